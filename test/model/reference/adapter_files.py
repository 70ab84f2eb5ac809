"""What make_adapters.py and make_encoder_adapters.py have in common."""
import json

import torch


def randomise(adapted, seed, biases):
    """Other values for all that an adapter has: `biases` is how far biases go."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in adapted.named_parameters():
            if "lora_magnitude" in name:
                p.mul_(1 + 0.2 * torch.randn_like(p))
            elif "lora_A" in name or "lora_embedding_A" in name:
                p.normal_(0, 1 / p.shape[-1] ** 0.5)
            elif "lora_B" in name or "lora_embedding_B" in name:
                p.normal_(0, 0.3)
            elif "modules_to_save" in name:
                p.add_(0.1 * torch.randn_like(p))
            elif p.requires_grad:
                p.add_(biases * torch.randn_like(p))


def save(adapted, folder, base, **options):
    folder.mkdir(parents=True, exist_ok=True)
    adapted.save_pretrained(folder, **options)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = base
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "README.md").unlink(missing_ok=True)
