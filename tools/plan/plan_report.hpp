// SPDX-License-Identifier: Apache-2.0
// What gdrx plan prints about proofs and predictions.
#pragma once

#include <vector>

#include "gdrx/plan_simulate.hpp"

namespace gdrx::tools {

struct Compared {
  plan::Algorithm algorithm{};
  plan::Prediction prediction;
};

void print_proof(const plan::Plan& plan, const plan::Proof& proof);
void print_prediction(const plan::Plan& plan, Bytes size, const plan::Prediction& prediction);
void print_json(const plan::Plan& plan, Bytes size, const plan::Prediction& prediction);
void print_comparison(const plan::Spec& spec, Bytes size, std::vector<Compared> rows);

}  // namespace gdrx::tools
