// SPDX-License-Identifier: Apache-2.0
// Graphs, and what they retain. A graph's nodes run in the order in which they were captured,
// though some could run beside each other.
#include <utility>

#include "tests/emulated/cuda/state.hpp"

using namespace gdrx::emulated;  // NOLINT(google-build-using-namespace): CUDA's names are global

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made =
      new CUgraphExec_st{std::make_shared<const std::vector<Work>>(graph->nodes), graph->objects};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return told(enqueue(stream, [nodes = graph->nodes] {
    for (const Work& node : *nodes) node();
  }));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}

// One reference, which is the caller's until a graph has it.
cudaError_t cudaUserObjectCreate(cudaUserObject_t* made, void* its, cudaHostFn_t destroy,
                                 unsigned references, unsigned) {
  if (references != 1) return told(cudaErrorInvalidValue);
  *made = new CUuserObject_st{std::shared_ptr<void>(its, destroy)};
  return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned) {
  delete object;
  return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned,
                                      unsigned flags) {
  if (flags != cudaGraphUserObjectMove) return told(cudaErrorInvalidValue);
  graph->objects.push_back(object->held);
  delete object;
  return cudaSuccess;
}
