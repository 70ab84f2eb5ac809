#include "text/common_templates.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

namespace braid::text {
namespace {

struct Named {
  std::string_view name, text;
};

// In the notation of each family's published format.
constexpr std::array kTemplates = {
    Named{"chatml",
          "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"},
    Named{"plain",
          "{% for m in messages %}{{ m.content if m.role == 'system' else (m.role | capitalize) + ': ' + m.content }}\n\n{% endfor %}"
          "{% if add_generation_prompt %}Assistant:{% endif %}"},
    Named{"llama2",
          "{% set ns = namespace(system='') %}{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}"
          "{% set ns.system = '<<SYS>>\n' + m.content + '\n<</SYS>>\n\n' %}{% elif m.role == 'user' %}[INST] {{ ns.system + m.content }} "
          "[/INST]"
          "{% set ns.system = '' %}{% else %} {{ m.content }} {{ eos_token }}{% endif %}{% endfor %}"},
    Named{"llama3",
          "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>"
          "{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"},
    Named{"mistral",
          "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}[SYSTEM_PROMPT]{{ m.content }}[/SYSTEM_PROMPT]"
          "{% elif m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"},
    Named{"gemma",
          "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
          "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
          "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"},
    Named{"phi3",
          "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% "
          "endif %}"},
    Named{"phi4",
          "{% for m in messages %}<|im_start|>{{ m.role }}<|im_sep|>{{ m.content }}<|im_end|>{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant<|im_sep|>{% endif %}"},
    Named{"zephyr",
          "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n{% endfor %}"
          "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"},
    Named{"deepseek",
          "{% set ns = namespace(system='') %}{% for m in messages if m.role not in ['user', 'assistant'] %}"
          "{% set ns.system = ns.system + ('\n\n' if ns.system else '') + m.content %}{% endfor %}{{ bos_token }}{{ ns.system }}"
          "{% for m in messages %}{% if m.role == 'user' %}<｜User｜>{{ m.content }}{% elif m.role == 'assistant' %}"
          "<｜Assistant｜>{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
          "{% if add_generation_prompt %}<｜Assistant｜>{% endif %}"},
    Named{
        "vicuna",
        "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}\n\n{% elif m.role == 'user' %}USER: {{ m.content }}\n{% else %}"
        "ASSISTANT: {{ m.content }}{{ eos_token }}\n{% endif %}{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"},
    Named{"alpaca",
          "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}\n\n{% elif m.role == 'user' %}### Instruction:\n{{ m.content "
          "}}\n\n"
          "{% else %}### Response:\n{{ m.content }}{{ eos_token }}\n\n{% endif %}{% endfor %}"
          "{% if add_generation_prompt %}### Response:\n{% endif %}"},
};

}  // namespace

std::optional<TemplateSource> common_template(std::string_view name) {
  const auto* found = std::find_if(kTemplates.begin(), kTemplates.end(), [&](const Named& one) { return one.name == name; });
  if (found == kTemplates.end()) return std::nullopt;
  return TemplateSource{"default", std::string(found->text)};
}

std::vector<std::string_view> common_template_names() {
  std::vector<std::string_view> out;
  std::transform(kTemplates.begin(), kTemplates.end(), std::back_inserter(out), [](const Named& one) { return one.name; });
  return out;
}

std::string_view fitting_template(const Vocabulary& vocabulary) {
  return vocabulary.find("<|im_start|>") && vocabulary.find("<|im_end|>") ? "chatml" : "plain";
}

}  // namespace braid::text
