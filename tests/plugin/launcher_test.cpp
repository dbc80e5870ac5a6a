// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/launcher.hpp"

#include <gtest/gtest.h>

namespace gdrx::net {
namespace {

TEST(Launcher, SaysHowManyRanksTheHostHas) {
  EXPECT_EQ(ranks_here({}), 1);
  EXPECT_EQ(ranks_here({"HOME=/", "LOCAL_WORLD_SIZE=8"}), 8);
  EXPECT_EQ(ranks_here({"OMPI_COMM_WORLD_LOCAL_SIZE=4"}), 4);
  EXPECT_EQ(ranks_here({"MPI_LOCALNRANKS=3"}), 3);
  EXPECT_EQ(ranks_here({"SLURM_STEP_TASKS_PER_NODE=8(x2)"}), 8);
  EXPECT_EQ(ranks_here({"SLURM_STEP_TASKS_PER_NODE=8(x2),4"}), 8);
}

TEST(Launcher, TheInnermostIsAskedFirst) {
  EXPECT_EQ(ranks_here({"OMPI_COMM_WORLD_LOCAL_SIZE=1", "LOCAL_WORLD_SIZE=8"}), 8);
  EXPECT_EQ(ranks_here({"SLURM_STEP_TASKS_PER_NODE=1", "OMPI_COMM_WORLD_LOCAL_SIZE=4"}), 4);
}

TEST(Launcher, WhatIsNoNumberIsPassedOver) {
  for (const char* value : {"", "many", "0", "-3", "8abc", " 8", "99999999999999999999"}) {
    EXPECT_EQ(ranks_here({std::string("LOCAL_WORLD_SIZE=") + value}), 1) << value;
    EXPECT_EQ(ranks_here({std::string("LOCAL_WORLD_SIZE=") + value, "MPI_LOCALNRANKS=2"}), 2);
  }
}

}  // namespace
}  // namespace gdrx::net
