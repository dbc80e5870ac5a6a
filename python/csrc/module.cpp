// SPDX-License-Identifier: Apache-2.0
// What Python sees of the backend.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>

#include <utility>

#include "backend.hpp"
#include "pool.hpp"

namespace py = pybind11;
using gdrx_torch::Backend;
using gdrx_torch::GroupOptions;
using gdrx_torch::Milliseconds;

using NoGil = py::call_guard<py::gil_scoped_release>;
template <class T>
using Held = c10::intrusive_ptr<T>;

namespace {

py::dict dict_of(const gdrx_torch::Stats& stats) {
  py::dict calls;
  for (const auto& [title, seen] : stats.calls) {
    calls[py::str(title.substr(title.find(':') + 1))] =
        py::dict(py::arg("count") = seen.count, py::arg("bytes") = seen.bytes,
                 py::arg("seconds") = seen.seconds);
  }
  return py::dict(py::arg("calls") = calls, py::arg("late") = stats.late,
                  py::arg("running") = stats.running, py::arg("behind") = stats.behind,
                  py::arg("seconds") = stats.seconds, py::arg("text") = stats.text,
                  py::arg("waited") = stats.waited, py::arg("gpu_memory") = stats.gpu_memory);
}

py::dict stats_of(Backend& backend) {
  gdrx_torch::Stats stats;
  {
    const py::gil_scoped_release free;
    stats = backend.stats();
  }
  return dict_of(stats);
}

// (number, this rank, stats) of each group that lives.
py::list all_stats() {
  std::vector<std::tuple<int, int, gdrx_torch::Stats>> all;
  {
    const py::gil_scoped_release free;
    for (const auto& group : gdrx_torch::all_groups())
      all.emplace_back(group->number(), group->rank(), group->stats());
  }
  py::list list;
  for (const auto& [number, rank, stats] : all) {
    list.append(py::make_tuple(number, rank, dict_of(stats)));
  }
  return list;
}

Held<GroupOptions> options_of(int gpu_blocks, bool reproducible, bool urgent_stream) {
  TORCH_CHECK_VALUE(gpu_blocks >= 0 && gpu_blocks <= 1024, "gdrx: gpu_blocks is ", gpu_blocks,
                    ": give 1 to 1024 multiprocessors, or 0 for the default");
  return c10::make_intrusive<GroupOptions>(
      Milliseconds(-1), gdrx_torch::Wishes{gpu_blocks, reproducible, urgent_stream});
}

// What the thread that watches hears of all groups of the process.
py::list look() {
  std::vector<gdrx_torch::Seen> all;
  {
    const py::gil_scoped_release free;
    all = gdrx_torch::look_at_groups();
  }
  py::list list;
  for (const auto& seen : all) {
    list.append(py::dict(py::arg("group") = seen.group, py::arg("rank") = seen.rank,
                         py::arg("name") = seen.name, py::arg("late") = seen.late,
                         py::arg("text") = seen.text, py::arg("failure") = seen.failure));
  }
  return list;
}

// Of one list of all tensors' sizes, a tuple for each.
py::list shapes(const gdrx_torch::Recorded& call, std::size_t from, std::size_t to) {
  py::list all;
  std::size_t at = 0;
  for (std::size_t i = 0; i < to; ++i) {
    py::list sizes;
    for (std::size_t j = 0; j < call.dims[i]; ++j) sizes.append(call.sizes[at++]);
    if (i >= from) all.append(sizes);
  }
  return all;
}

py::list types(const gdrx_torch::Recorded& call, std::size_t from, std::size_t to) {
  py::list all;
  for (std::size_t i = from; i < to; ++i) all.append(c10::toString(call.types[i]));
  return all;
}

py::list record() {
  py::list all;
  for (const auto& call : gdrx_torch::Record::of_process().calls()) {
    const std::size_t tensors = call.dims.size();
    all.append(py::dict(py::arg("number") = call.number, py::arg("group") = call.group,
                        py::arg("sequence") = call.sequence, py::arg("title") = call.title,
                        py::arg("peer") = call.peer.rank, py::arg("sends") = call.peer.sends,
                        py::arg("on_gpu") = call.on_gpu,
                        py::arg("input_sizes") = shapes(call, 0, call.inputs),
                        py::arg("input_dtypes") = types(call, 0, call.inputs),
                        py::arg("output_sizes") = shapes(call, call.inputs, tensors),
                        py::arg("output_dtypes") = types(call, call.inputs, tensors),
                        py::arg("created") = call.created, py::arg("ended") = call.ended,
                        py::arg("timeout") = call.timeout, py::arg("failed") = call.failed));
  }
  return all;
}

py::dict recorded_groups() {
  py::dict all;
  for (const auto& [number, group] : gdrx_torch::Record::of_process().groups()) {
    all[py::int_(number)] = py::make_tuple(group.name, group.ranks, group.rank);
  }
  return all;
}

py::object pools() { return py::module_::import("gdrx.pools"); }

void share(Backend& backend, gdrx_torch::PoolId pool,
           const std::vector<std::pair<std::uintptr_t, std::uint64_t>>& ranges) {
  std::vector<gdrx_torch::Segment> segments;
  for (const auto& [address, bytes] : ranges) segments.push_back({address, bytes});
  const py::gil_scoped_release free;
  backend.share(pool, segments);
}

// The name that PyTorch's own backend has, and what its callers give to it.
void bind_pools(py::class_<Backend, Held<Backend>, c10d::Backend>& backend) {
  backend
      .def_property_readonly(
          "mem_allocator", [](const Backend&) { return pools().attr("allocator")(); },
          "For torch.cuda.MemPool: memory that register_mem_pool can tell apart.")
      .def(
          "register_mem_pool",
          [](Backend& self, const py::object& pool, bool) {
            share(self, pool.attr("id").cast<gdrx_torch::PoolId>(),
                  pools()
                      .attr("segments_of")(pool)
                      .cast<std::vector<std::pair<std::uintptr_t, std::uint64_t>>>());
          },
          py::arg("pool"), py::arg("symm") = false,
          "Collective: maps what the pool has now on all ranks, which have allocated alike.")
      .def(
          "deregister_mem_pool",
          [](Backend& self, const py::object& pool) {
            const auto id = pool.attr("id").cast<gdrx_torch::PoolId>();
            const py::gil_scoped_release free;
            self.unshare(id);
          },
          py::arg("pool"), "Collective: waits for this rank's GPU.");
}

// What a later version binds for every backend.
void bind_what_versions_lack(py::class_<Backend, Held<Backend>, c10d::Backend>& backend) {
#if !GDRX_TORCH_AT_LEAST(15)
  backend.def("_start_time_estimate", &Backend::startTimeEstimate, NoGil())
      .def("_end_time_estimate", &Backend::endTimeEstimate, NoGil());
#endif
#if GDRX_TORCH_AT_LEAST(7)
  backend.def("get_error", &Backend::getError, NoGil());
#else
  backend.def("abort", &Backend::abort, NoGil()).def("shutdown", &Backend::shutdown, NoGil());
#endif
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::module_::import("torch.distributed.distributed_c10d");  // the base classes
  py::class_<GroupOptions, Held<GroupOptions>, c10d::Backend::Options>(
      m, "Options", "What a group is asked for: the same on every rank, but for the stream.")
      .def(py::init(&options_of), py::kw_only(), py::arg("gpu_blocks") = 0,
           py::arg("reproducible") = false, py::arg("is_high_priority_stream") = false)
      .def_property_readonly("gpu_blocks",
                             [](const GroupOptions& o) { return o.wishes.gpu_blocks; })
      .def_property_readonly("reproducible",
                             [](const GroupOptions& o) { return o.wishes.reproducible; })
      .def_property_readonly("is_high_priority_stream",
                             [](const GroupOptions& o) { return o.wishes.urgent_stream; })
      .def("__deepcopy__", [](const GroupOptions& self, const py::dict&) {
        return c10::make_intrusive<GroupOptions>(self);
      });
  py::class_<Backend, Held<Backend>, c10d::Backend> backend(m, "Backend");
  backend
      .def(py::init([](const gdrx_torch::StorePtr& store, int rank, int size, Milliseconds timeout,
                       const Held<GroupOptions>& asked, bool later) {
             const py::gil_scoped_release free;
             return c10::make_intrusive<Backend>(
                 store, rank, size, timeout, asked ? asked->wishes : gdrx_torch::Wishes{}, later);
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
           py::arg("asked") = Held<GroupOptions>(), py::arg("later") = false)
      .def_property_readonly("options", &Backend::options)
      .def_property_readonly("uid", [](const Backend& self) { return self.getGroupUid(); })
      .def("failure", &Backend::failure, NoGil(), "Why the group has failed; empty: it has not.")
      .def("explain", &Backend::explain, NoGil(), py::arg("bytes"), py::arg("cuda") = false,
           "The reasons for how an all_reduce of so many bytes runs.")
      .def("set_reproducible", &Backend::set_reproducible, NoGil(), py::arg("on"),
           "Collective, with no call in flight. See gdrx.set_reproducible.")
      .def("stats", &stats_of, "What the group has done, and whom it waits for.")
      .def("comm_split_count", &Backend::splits)
      .def(
          "perform_nocolor_split", [](const Backend&, const py::object&) {},
          "Nothing to do: a group is made by its members alone.")
      .def("_is_initialized", &Backend::isInitialized)
      .def("named", &Backend::named, NoGil(), py::arg("name"), py::arg("ranks"),
           "Its name, and the ranks of the job that it has, for what is told of it.")
      .def("_add_ephemeral_timeout", &Backend::addEphemeralTimeout, NoGil(), py::arg("timeout"))
      .def("_set_default_timeout", &Backend::setTimeout, NoGil(), py::arg("timeout"));
  bind_pools(backend);
  bind_what_versions_lack(backend);
  m.def("allocated_as", &gdrx_torch::allocated_as, py::arg("address"),
        "The number of this allocation among those of gdrx_pool_alloc; -1: it is none of them.");
  m.def("leave_all", &gdrx_torch::leave_all, NoGil(), py::arg("grace"), py::arg("most"),
        "The process ends: shuts all groups down.");
  m.def("look", &look, "Of each group: whom its calls wait for, and why it has failed.");
  m.def("all_stats", &all_stats, "Of each group that lives: its number, this rank, its stats.");
  m.def("record", &record, "The last calls of this process.");
  m.def("recorded_groups", &recorded_groups,
        "Number: name, ranks of the job, and which of them this is.");
  m.attr("torch_version") = TORCH_VERSION;
}
