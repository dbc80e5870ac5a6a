// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "mpi-tests/die.hpp"

namespace gdrx::bench {
namespace {

constexpr int kFewestCalls = 3;

// So many elements a unit keep the number of units an int.
std::uint64_t grain_of(std::uint64_t count) { return count / std::numeric_limits<int>::max() + 1; }

}  // namespace

double percentile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(std::lround(p * static_cast<double>(values.size() - 1)));
  return values[at];
}

Times times_of(const std::vector<double>& calls) {
  return {percentile(calls, 0.5), percentile(calls, 0.99)};
}

std::vector<double> slowest_of(const std::vector<double>& mine) {
  std::vector<double> slowest(mine.size());
  MPI_Allreduce(mine.data(), slowest.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX,
                MPI_COMM_WORLD);
  return slowest;
}

Case::Case(const Options& options, int rank, int ranks, DataType type, ReduceOp op,
           std::uint64_t bytes, Gpu* gpu)
    : options_(options),
      rank_(rank),
      ranks_(ranks),
      key_{type, op, ranks, 0},
      place_{options.sister->kind, options.sister->elements_of(type, bytes, ranks), rank, ranks,
             options.root},
      count_(place_.count),
      in_(count_ * size_of(type), options.unaligned),
      out_(count_ * size_of(type), options.unaligned),
      expected_((count_ + grain_of(count_) - 1) * size_of(type)),
      gpu_(gpu) {
  if (!options_.cuda) return;
  for (auto [copy, host] : {std::pair(&gpu_in_, &in_), std::pair(&gpu_out_, &out_)}) {
    auto made = GpuCopy::create(*host, gpu_->ordinal);
    if (!made) die(rank_, describe(made.error()));
    copy->emplace(std::move(*made));
  }
}

void Case::must(const Result<void>& result) {
  if (!result) die(rank_, describe(result.error()));
}

// The output's buffer as it is before a call, and as it has to be afterwards.
void Case::prepare(std::uint64_t iteration, bool in_place) {
  key_.seed = options_.seed * 1'000'003 + iteration * 7919 + count_;
  const std::size_t element = size_of(key_.type);
  fill_input(key_, rank_, in_.data(), place_.input_count());
  out_.poison();
  if (in_place) {
    std::memcpy(out_.data() + place_.input_at() * element, in_.data(),
                place_.input_count() * element);
  }
  std::memcpy(expected_.data(), out_.data(), count_ * element);
  const std::uint64_t output = in_place ? place_.output_at() : 0;
  for (const Piece& piece : pieces_of(place_)) {
    std::byte* const to = expected_.data() + (output + piece.at) * element;
    if (piece.from == Piece::kReduced) {
      expect_reduced(piece, to);
    } else {
      fill_input(key_, piece.from, to, piece.begin, piece.count);
    }
  }
}

// Where all get one vector, each rank computes its share of it, and all of them see the whole. MPI
// counts in int: a unit is as many elements as that takes, one mostly.
void Case::expect_reduced(const Piece& piece, std::byte* to) {
  if (place_.kind != Kind::all_reduce) return fill_expected(key_, to, piece.begin, piece.count);
  const std::size_t element = size_of(key_.type);
  const std::uint64_t grain = grain_of(count_);
  const std::uint64_t units = (count_ + grain - 1) / grain;
  const auto ranks = static_cast<std::uint64_t>(ranks_);
  const std::uint64_t share = (units + ranks - 1) / ranks;
  std::vector<int> lengths;
  std::vector<int> places;
  for (std::uint64_t r = 0; r < ranks; ++r) {
    const std::uint64_t begin = std::min(units, share * r);
    places.push_back(static_cast<int>(begin));
    lengths.push_back(static_cast<int>(std::min(units, begin + share) - begin));
  }
  const std::uint64_t begin = std::min(count_, share * static_cast<std::uint64_t>(rank_) * grain);
  const std::uint64_t end = std::min(count_, begin + share * grain);
  fill_expected(key_, to + begin * element, begin, end - begin);
  MPI_Datatype unit = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(element * grain), MPI_BYTE, &unit);
  MPI_Type_commit(&unit);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, lengths.data(), places.data(), unit,
                 MPI_COMM_WORLD);
  MPI_Type_free(&unit);
}

std::array<std::byte*, 2> Case::buffers() {
  return {gpu_in_ ? gpu_in_->data() : in_.data(), gpu_out_ ? gpu_out_->data() : out_.data()};
}

Ends Case::ends(bool in_place) {
  const auto [in, out] = buffers();
  return ends_of(place_, key_.type, in, out, in_place);
}

void Case::call(gdrxComm_t comm, const Ends& where, void* stream) {
  const gdrxResult_t result = call_gdrx(place_, key_.type, key_.op, where, comm, stream);
  if (result != gdrxSuccess) die(rank_, gdrxGetLastError(comm));
}

std::uint64_t Case::check(gdrxComm_t comm, bool in_place, Row& row) {
  if (gpu_in_) must(gpu_in_->upload());
  if (gpu_out_) must(gpu_out_->upload());
  void* const stream =
      gpu_ != nullptr && options_.mode != Mode::blocking ? gpu_->bench->stream() : nullptr;
  call(comm, ends(in_place), stream);
  if (stream != nullptr) must(gpu_->bench->synchronize());
  if (gpu_in_) must(gpu_in_->download());
  if (gpu_out_) must(gpu_out_->download());
  std::uint64_t wrong = count_wrong(out_.data(), expected_.data(), key_.type, count_);
  wrong += in_.damaged_guards() + out_.damaged_guards();
  gdrxOpInfo_t info{};
  info.size = sizeof info;
  if (gdrxCommGetLastOp(comm, &info) != gdrxSuccess) die(rank_, gdrxGetLastError(comm));
  row.algorithm = info.algorithm;
  row.transport = info.transport;
  row.predicted_us = info.predicted_us;
  row.registered = info.registered != 0;
  if (options_.sister->plans && (info.messages_sent != info.plan_sends * info.slices ||
                                 info.messages_received != info.plan_receives * info.slices)) {
    fmt::print(stderr,
               "[rank {}] {}: {} messages sent and {} received, the plan has {} and {} in each of "
               "{} slices\n",
               rank_, info.algorithm, info.messages_sent, info.messages_received, info.plan_sends,
               info.plan_receives, info.slices);
    ++wrong;
  }
  return wrong;
}

// Calls back to back, as nccl-tests does; of each call the slowest rank counts.
template <class Call>
std::vector<double> Case::slowest_of_each(int calls, Call call) {
  std::vector<double> mine;
  MPI_Barrier(MPI_COMM_WORLD);
  auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    call();
    const auto now = std::chrono::steady_clock::now();
    mine.push_back(std::chrono::duration<double, std::micro>(now - before).count());
    before = now;
  }
  return slowest_of(mine);
}

// A slow network does not keep who waits for the table: where the faster of two calls says that the
// row would take longer than it should, as many follow as there is time for. Every rank knows the
// same times.
template <class Call>
Times Case::time(Call call, int& calls) {
  const int tried = std::min(options_.warmup, 2);
  int warmup = options_.warmup - tried;
  calls = options_.iterations;
  if (tried > 0) {
    const std::vector<double> first = slowest_of_each(tried, call);
    const double one = std::max(*std::min_element(first.begin(), first.end()), 0.1);
    const double most = options_.row_seconds * 1e6 / one - tried;
    if (!options_.iterations_asked && warmup + calls > most) {
      warmup = 0;
      calls = std::clamp(static_cast<int>(most), std::min(kFewestCalls, calls), calls);
    }
  }
  for (int i = 0; i < warmup; ++i) call();
  return times_of(slowest_of_each(calls, call));
}

std::optional<Times> Case::time_mpi(bool in_place, int& calls) {
  if (!has_mpi(place_, key_.type, key_.op)) return std::nullopt;
  const Ends where = ends(in_place);
  return time([&] { call_mpi(place_, key_.type, key_.op, where); }, calls);
}

namespace {

/// Registers buffers, or moves them into registered memory, for as long as it lives.
class Registered {
 public:
  Registered(gdrxComm_t comm, int rank) : comm_(comm), rank_(rank) {}
  ~Registered() {
    for (gdrxRegistration_t handle : handles_) gdrxDeregister(comm_, handle);
    for (auto [copy, memory] : moved_) {
      copy->move_to(nullptr);
      gdrxMemFree(comm_, memory);
    }
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  void add(const std::array<std::byte*, 2>& buffers, std::size_t bytes) {
    if (bytes == 0) return;
    for (std::byte* memory : buffers) {
      gdrxRegistration_t handle = nullptr;
      if (gdrxRegister(comm_, memory, bytes, &handle) != gdrxSuccess) {
        die(rank_, gdrxGetLastError(comm_));
      }
      handles_.push_back(handle);
    }
  }
  void move(GpuCopy& copy) {
    void* memory = nullptr;
    if (gdrxGpuMemAlloc(comm_, &memory, copy.room()) != gdrxSuccess) {
      die(rank_, gdrxGetLastError(comm_));
    }
    copy.move_to(static_cast<std::byte*>(memory));
    moved_.emplace_back(&copy, memory);
  }

 private:
  gdrxComm_t comm_;
  int rank_;
  std::vector<gdrxRegistration_t> handles_;
  std::vector<std::pair<GpuCopy*, void*>> moved_;
};

}  // namespace

// Of an allReduce both kinds of memory. Parts are as the largest.
void Case::explain(gdrxComm_t comm) {
  const std::size_t bytes = count_ * size_of(key_.type);
  Registered while_it_explains(comm, rank_);
  if (options_.registered) while_it_explains.add(buffers(), bytes);
  std::string text(8192, '\0');
  const Sister& sister = *options_.sister;
  const std::string name(sister.explained.empty() ? sister.call : sister.explained);
  gdrxCallShape_t call{};
  call.size = sizeof call;
  call.collective = name.c_str();
  call.count = sister.split ? count_ / static_cast<std::uint64_t>(ranks_) : count_;
  call.type = static_cast<gdrxDataType_t>(key_.type);
  call.op = static_cast<gdrxRedOp_t>(key_.op);
  call.root = options_.root;
  call.cuda = options_.cuda ? 1 : 0;
  const gdrxResult_t explained = sister.kind == Kind::all_reduce
                                     ? gdrxCommExplain(comm, bytes, text.data(), text.size())
                                     : gdrxCommExplainCall(comm, &call, text.data(), text.size());
  if (explained != gdrxSuccess) die(rank_, gdrxGetLastError(comm));
  if (rank_ == 0) fmt::print("{}", text.c_str());
}

Row Case::run(gdrxComm_t comm, bool in_place, bool registered) {
  Registered while_it_runs(comm, rank_);
  if (registered && options_.allocated) {
    while_it_runs.move(*gpu_in_);
    while_it_runs.move(*gpu_out_);
  } else if (registered) {
    while_it_runs.add(buffers(), count_ * size_of(key_.type));
  }
  Row row;
  row.buffers_registered = registered;
  row.bytes = count_ * size_of(key_.type);
  row.count = count_;
  row.type = key_.type;
  row.op = key_.op;
  row.in_place = in_place;
  row.cuda = options_.cuda;
  std::uint64_t wrong = 0;
  for (int i = 0; i < std::max(1, options_.checks); ++i) {
    prepare(static_cast<std::uint64_t>(i), in_place);
    wrong += check(comm, in_place, row);
  }
  if (options_.checks == 0) wrong = 0;
  MPI_Allreduce(&wrong, &row.wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  row.mode = options_.mode;
  if (options_.mode == Mode::blocking) {
    const Ends where = ends(in_place);
    row.time = time([&] { call(comm, where, nullptr); }, row.calls);
  } else {
    time_on_gpu(comm, in_place, row);
  }
  if (options_.vs_mpi) row.mpi = time_mpi(in_place, row.mpi_calls);
  row.algbw = static_cast<double>(row.bytes) / row.time.p50 / 1000;
  row.busbw = row.algbw * options_.sister->bus_factor(ranks_);
  return row;
}

}  // namespace gdrx::bench
