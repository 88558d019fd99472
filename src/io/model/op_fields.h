#pragma once

#include <string_view>
#include <vector>

#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "model/model.h"

namespace plait {

// The fields of an op that only some kinds have and that are seldom set: `matrices`, `branches`,
// the switches and the ways to cut it, in every file that has ops. What is absent is Op's own
// default.
std::vector<std::string_view> special_op_keys();  // also `parts`, which older files have
void read_special_fields(const JsonValue& object, Op& op);
void write_special_fields(const Op& op, JsonObject& object);

// Whether the op is as written before its fields had names of their own: one number `parts`, whose
// meaning was up to the kind, and facts that followed from other fields.
bool is_old_op(const JsonValue& object, const Op& op);

// Fills in the fields that older files do not have, by the rules that held then.
void name_old_fields(const JsonValue& object, Op& op);

}  // namespace plait
