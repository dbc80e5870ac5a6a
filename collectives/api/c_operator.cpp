// SPDX-License-Identifier: Apache-2.0
// Operators: those that a type takes, and those that a program makes.
#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_state.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx::c_api {
namespace {

// Above all that gdrx.h names, now or later. Far fewer are alive at once than there are numbers.
constexpr int kFirstMade = 0x1000;
constexpr int kMadeNumbers = gdrxMaxRedOp - kFirstMade;

Result<void> check_type(DataType type, ReduceOp op) {
  if (takes(type, op)) return {};
  return fail(Errc::invalid_argument,
              fmt::format("there is no {} of {}, which takes {}", to_string(op), to_string(type),
                          operators_of(type)));
}

Result<void> set_made(const gdrxComm* comm, int number, Call& call) {
  const auto found = comm->operators.find(number);
  if (found == comm->operators.end()) {
    return fail(Errc::invalid_argument,
                fmt::format("{} is no gdrxRedOp_t of this communicator: another made it, or it was "
                            "destroyed, or never made",
                            number));
  }
  const MadeOperator& made = *found->second;
  if (made.kind == ReduceOp::premul_sum && made.type != call.type) {
    return fail(Errc::invalid_argument,
                fmt::format("the operator was made with a scalar of {} and the call is of {}",
                            to_string(made.type), to_string(call.type)));
  }
  call.op = made.kind;
  call.made = found->second;
  return {};
}

// Numbers are of the process, so that another communicator's is not taken for one of this.
void keep(gdrxComm* comm, std::shared_ptr<const MadeOperator> made, gdrxRedOp_t* op) {
  static std::atomic<std::uint64_t> next{0};
  int number = 0;
  do {
    number = kFirstMade + static_cast<int>(next.fetch_add(1) % kMadeNumbers);
  } while (!comm->operators.emplace(number, made).second);
  *op = static_cast<gdrxRedOp_t>(number);
}

struct UserFunction : MadeOperator {
  gdrxRedOpFunction_t function = nullptr;
  void* user_data = nullptr;

  static void apply(const void* context, const void* in, void* inout, std::size_t count,
                    DataType type) {
    const auto& self = *static_cast<const UserFunction*>(context);
    self.function(in, inout, count, static_cast<gdrxDataType_t>(type), self.user_data);
  }
};

}  // namespace

Result<void> set_operator(const gdrxComm* comm, gdrxRedOp_t op, Call& call) {
  const auto value = static_cast<int>(op);
  if (value >= kFirstMade) return set_made(comm, value, call);
  if (static_cast<unsigned>(value) >= kNamedOpCount) {
    return fail(Errc::invalid_argument, fmt::format("{} is no gdrxRedOp_t", value));
  }
  call.op = static_cast<ReduceOp>(value);
  if (takes(call.type, call.op)) return {};  // each call comes here
  return check_type(call.type, call.op);
}

}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxRedOpCreatePreMulSum(gdrxRedOp_t* op, const void* scalar, gdrxDataType_t type,
                                      gdrxComm_t comm) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    if (op == nullptr || scalar == nullptr) {
      return fail(Errc::invalid_argument, "op or scalar is NULL");
    }
    auto made = std::make_shared<MadeOperator>();
    made->kind = ReduceOp::premul_sum;
    made->type = GDRX_TRY(data_type(type));
    GDRX_TRY(check_type(made->type, made->kind));
    static_assert(sizeof(long double) <= sizeof made->scalar);
    if (has_kernels(made->type, ReduceOp::sum)) GDRX_TRY(comm->impl->reserve_products());
    if (cuda::kind_of(scalar) == MemoryKind::cuda) {
      made->scalar_at = static_cast<const std::byte*>(scalar);
    } else {
      std::memcpy(made->scalar.data(), scalar, size_of(made->type));
    }
    keep(comm, std::move(made), op);
    return {};
  });
}

gdrxResult_t gdrxRedOpCreate(gdrxRedOp_t* op, gdrxRedOpFunction_t function, int commutative,
                             void* user, gdrxComm_t comm) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    if (op == nullptr || function == nullptr) {
      return fail(Errc::invalid_argument, "op or function is NULL");
    }
    auto made = std::make_shared<UserFunction>();
    made->kind = ReduceOp::user;
    made->function = function;
    made->user_data = user;
    made->user = {UserFunction::apply, made.get()};
    made->in_rank_order = commutative == 0;
    if (++comm->user_operators == 0) comm->user_operators = 1;  // 0 is none
    made->number = comm->user_operators;
    keep(comm, std::move(made), op);
    return {};
  });
}

gdrxResult_t gdrxRedOpDestroy(gdrxRedOp_t op, gdrxComm_t comm) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    if (comm->operators.erase(static_cast<int>(op)) == 1) return {};
    return fail(Errc::invalid_argument,
                fmt::format("{} is no operator that this communicator made", static_cast<int>(op)));
  });
}
