// SPDX-License-Identifier: Apache-2.0
// What Python sees of the backend.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>

#include <utility>

#include "backend.hpp"

namespace py = pybind11;
using gdrx_torch::Backend;
using gdrx_torch::Milliseconds;

template <class T>
using Held = c10::intrusive_ptr<T>;

namespace {

py::dict stats_of(Backend& backend) {
  gdrx_torch::Stats stats;
  {
    const py::gil_scoped_release free;
    stats = backend.stats();
  }
  py::dict calls;
  for (const auto& [title, seen] : stats.calls) {
    calls[py::str(title.substr(title.find(':') + 1))] =
        py::dict(py::arg("count") = seen.count, py::arg("bytes") = seen.bytes);
  }
  return py::dict(py::arg("calls") = calls, py::arg("late") = stats.late,
                  py::arg("running") = stats.running, py::arg("behind") = stats.behind,
                  py::arg("seconds") = stats.seconds, py::arg("text") = stats.text);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::module_::import("torch.distributed.distributed_c10d");  // the base classes
  using NoGil = py::call_guard<py::gil_scoped_release>;
  using gdrx_torch::GroupOptions;
  py::class_<GroupOptions, Held<GroupOptions>, c10d::Backend::Options>(m, "Options")
      .def("__deepcopy__", [](const GroupOptions& self, const py::dict&) {
        return c10::make_intrusive<GroupOptions>(self);
      });
  py::class_<Backend, Held<Backend>, c10d::Backend> backend(m, "Backend");
  backend
      .def(
          py::init([](const gdrx_torch::StorePtr& store, int rank, int size, Milliseconds timeout) {
            const py::gil_scoped_release free;
            return c10::make_intrusive<Backend>(store, rank, size, timeout);
          }),
          py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"))
      .def_property_readonly("options", &Backend::options)
      .def_property_readonly("uid", [](const Backend& self) { return self.getGroupUid(); })
      .def("failure", &Backend::failure, NoGil(), "Why the group has failed; empty: it has not.")
      .def("explain", &Backend::explain, NoGil(), py::arg("bytes"), py::arg("cuda") = false,
           "The reasons for how an all_reduce of so many bytes runs.")
      .def("use_urgent_stream", &Backend::use_urgent_stream,
           "Before the first call: CUDA calls with async_op are in a stream of high priority.")
      .def("stats", &stats_of, "What the group has done, and whom it waits for.")
      .def("comm_split_count", &Backend::splits)
      .def(
          "perform_nocolor_split", [](const Backend&, const py::object&) {},
          "Nothing to do: a group is made by its members alone.")
      .def("_is_initialized", [](const Backend&) { return true; })
      .def("_set_default_timeout", &Backend::setTimeout, NoGil(), py::arg("timeout"));
#if GDRX_TORCH_AT_LEAST(7)
  backend.def("get_error", &Backend::getError, NoGil());
#endif
  m.def("leave_all", &gdrx_torch::leave_all, NoGil(), py::arg("grace"), py::arg("most"),
        "The process ends: shuts all groups down.");
  m.attr("torch_version") = TORCH_VERSION;
}
