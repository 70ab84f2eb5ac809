// From a folder's config.json, or a GGUF file's metadata, to the shape of an encoder.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "model/encoders/encoder_shape.h"
#include "model/encoders/encoder_tensors.h"
#include "model/families/folder_config.h"

#include <string>
#include <string_view>

namespace braid::model {

// Whether the config.json is one of an encoder, or of a decoder that was made one.
bool describes_encoder(std::string_view config);
// The same of a GGUF file's general.architecture.
bool is_encoder_architecture(std::string_view architecture);

// kBadFile or kUnsupported with the key or tensor. The head is there where the model has one for classes. Dense modules are read from a
// file, which holds them itself, and not from a folder.
Result<EncoderShape> read_encoder_folder(const files::HfFolder& folder);
Result<EncoderShape> read_encoder_gguf(const files::GgufFile& file);

// Families. Each reads what it knows by `config`, whose error is looked at afterwards, and finds by `tensors` under which of its names they
// are.
EncoderShape bert_shape(FolderConfig& config, const EncoderTensors& tensors);        // also ELECTRA
EncoderShape roberta_shape(FolderConfig& config, const EncoderTensors& tensors);     // also XLM-R, CamemBERT
EncoderShape distilbert_shape(FolderConfig& config, const EncoderTensors& tensors);  //
EncoderShape mpnet_shape(FolderConfig& config, const EncoderTensors& tensors);
EncoderShape jina_bert_shape(FolderConfig& config, const EncoderTensors& tensors);   // Jina v2, whose folders call themselves BERT
EncoderShape nomic_bert_shape(FolderConfig& config, const EncoderTensors& tensors);  // also Jina v3, which calls itself XLM-R
EncoderShape gte_shape(FolderConfig& config, const EncoderTensors& tensors);         // "new" of Alibaba-NLP, Snowflake Arctic 2
EncoderShape modernbert_shape(FolderConfig& config, const EncoderTensors& tensors);
EncoderShape gemma_embedding_shape(FolderConfig& config, const EncoderTensors& tensors);

// What they have in common: sizes, vocabulary and epsilon.
EncoderShape common_shape(FolderConfig& config);
EncoderActivation activation_of(FolderConfig& config, FolderConfig::Names names, std::string_view fallback);
// `prefix` where the tensors have it before `name`, else nothing.
std::string prefix_of(const EncoderTensors& tensors, std::string_view prefix, std::string_view name);
// RoBERTa's head, where the file has one: a dense layer of its own in front of the classes.
void add_roberta_head(EncoderShape& shape, const EncoderTensors& tensors, EncoderActivation activation);
EncoderLinear linear_of(const std::string& name, std::int64_t outputs, std::int64_t inputs, std::int64_t first = 0);
// Of the last matrix of a head; 0 where it is none.
std::int64_t classes_of(const EncoderTensor& out);
EncoderNorm norm_of(const std::string& name);
EncoderNorm rms_norm_of(const std::string& name, float plus);

}  // namespace braid::model
