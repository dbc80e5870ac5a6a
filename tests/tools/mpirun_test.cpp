// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tools/mpirun/linkage.hpp"
#include "tools/mpirun/mpirun_launcher.hpp"

namespace gdrx::tools {
namespace {

using Words = std::vector<std::string>;

const Family& of_library(const char* library) {
  const Family* const found = family_of_library(library);
  EXPECT_NE(found, nullptr) << library;
  return *found;
}

TEST(Mpirun, KnowsALauncherByItsVersion) {
  EXPECT_EQ(family_of_version("mpirun (Open MPI) 4.1.4\n"), &of_library("libmpi.so.40"));
  EXPECT_EQ(family_of_version("HYDRA build details:\n    Version: 4.0.2\n"),
            &of_library("libmpi.so.12"));
  EXPECT_EQ(family_of_version("Intel(R) MPI Library for Linux* OS, Version 2021.19.0"),
            &of_library("libmpi.so.12"));
  EXPECT_EQ(family_of_version("srun: 22.05"), nullptr);
}

TEST(Mpirun, HasAnObjectForEachLibraryOfMpi) {
  EXPECT_EQ(of_library("libmpi.so.40").object, "libgdrx-coll-ompi.so");
  EXPECT_EQ(of_library("libmpi.so.12").object, "libgdrx-coll-mpich.so");
  EXPECT_EQ(of_library("libmpich.so.12").object, "libgdrx-coll-mpich.so");
  EXPECT_EQ(of_library("libmpichfort.so.12").object, "libgdrx-coll-mpich.so");
  EXPECT_EQ(of_library("libmpi_mpifh.so.40").object, "libgdrx-coll-ompi.so");
  EXPECT_EQ(of_library("libmpi_abi.so.1").object, "libgdrx-coll-standard.so");
  EXPECT_EQ(family_of_library("libmpi.so.20"), nullptr);
}

TEST(Mpirun, TellsOpenMpiByX) {
  EXPECT_EQ(words_for(of_library("libmpi.so.40"), {"-np", "2", "app"}, "/l/o.so", "",
                      {{"GDRX_MPI", "all"}}),
            (Words{"-x", "GDRX_MPI", "-x", "LD_PRELOAD=/l/o.so", "-np", "2", "app"}));
}

TEST(Mpirun, TellsHydraByGenv) {
  EXPECT_EQ(
      words_for(of_library("libmpi.so.12"), {"-np", "2", "app"}, "/l/o.so", "",
                {{"GDRX_MPI", "all"}}),
      (Words{"-genv", "GDRX_MPI", "all", "-genv", "LD_PRELOAD", "/l/o.so", "-np", "2", "app"}));
}

TEST(Mpirun, PreloadsWhatTheWordsAndTheEnvironmentDoBehindItsOwn) {
  EXPECT_EQ(
      words_for(of_library("libmpi.so.40"), {"-x", "LD_PRELOAD=a.so", "app"}, "o.so", "b.so", {}),
      (Words{"-x", "LD_PRELOAD=o.so:a.so:b.so", "app"}));
  for (const Words& given :
       {Words{"-genv", "LD_PRELOAD", "a.so", "app"}, Words{"-env", "LD_PRELOAD=a.so", "app"}}) {
    EXPECT_EQ(words_for(of_library("libmpi.so.12"), given, "o.so", "b.so", {}),
              (Words{"-genv", "LD_PRELOAD", "o.so:a.so:b.so", "app"}));
  }
}

TEST(Mpirun, LeavesAVariableWithoutAValueToTheLauncher) {
  EXPECT_EQ(words_for(of_library("libmpi.so.12"), {"-genv", "LD_PRELOAD"}, "o.so", "", {}),
            (Words{"-genv", "LD_PRELOAD", "o.so", "-genv", "LD_PRELOAD"}));
}

TEST(Linkage, NamesTheLibrariesOfThisProgram) {
  const auto needed = needed_by("/proc/self/exe");
  EXPECT_NE(std::find_if(needed.begin(), needed.end(),
                         [](const std::string& name) { return name.starts_with("libc.so."); }),
            needed.end());
  EXPECT_FALSE(mpi_of("/proc/self/exe"));
}

TEST(Linkage, FindsNothingInWhatIsNoProgram) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("linkage-" + std::to_string(getpid()));
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string text(200, '\0');  // a program that ends in its headers
  self.read(text.data(), static_cast<std::streamsize>(text.size()));
  for (const std::string& content : {std::string(), std::string("#!/bin/sh\n"), text}) {
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_TRUE(needed_by(path).empty());
  }
  std::filesystem::remove(path);
  EXPECT_TRUE(needed_by(path).empty());
  EXPECT_TRUE(needed_by("/").empty());
}

}  // namespace
}  // namespace gdrx::tools
