// SPDX-License-Identifier: Apache-2.0
// A sick host, all of whose names and values somebody else chose, and what a shell makes of the
// script of its fixes.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gdrx/snapshot.hpp"
#include "tools/doctor/doctor_view.hpp"
#include "topo/read/file_tree.hpp"

namespace gdrx::doctor::test {

class HostileHost {
 public:
  /// `text` gives another name or value at each call.
  explicit HostileHost(std::function<std::string()> text) : text_(std::move(text)) {
    pci("0000:10:01.0", "", "0x8086", "0x060400");
    pci("0000:11:00.0", "/0000:10:01.0", "0x10de", "0x030200");
    pci("0000:20:01.0", "", "0x15b3", "0x020700");
    pci("0000:20:02.0", "", "0x15b3", "0x020000");
    const std::string first = nic("0000:20:01.0", "InfiniBand");
    const std::string second = nic("0000:20:02.0", "Ethernet");
    const std::string group = name();
    add("proc/self/cgroup", "0::/" + group + "\n");
    add("sys/fs/cgroup/" + group + "/memory.max", "4096");
    add("sys/fs/cgroup/" + group + "/rdma.max", text_() + " hca_handle=2");
    add("etc/os-release", "ID=" + text_() + "\nPRETTY_NAME=" + text_() + "\n");
    add("proc/sys/vm/max_map_count", "1");
    add("proc/sys/kernel/numa_balancing", "1");
    probes_ += fmt::format("memlock 4096\nnofile 12\nkernel 5.4.{0}\naffinity {0}\n", line());
    probes_ += fmt::format("proofs tried\nproof {} port=1 gpu= way=host errno=5 problem={}\n",
                           word(), line());
    probes_ +=
        fmt::format("verbs dmabuf=1\nverbs-device {} open=0 dmabuf=95 max=5 active=3\n", word());
    probes_ += fmt::format("cuda 12040\ncuda-device {} gdr=0 dmabuf=0 export={}\n", word(), line());
    probes_ += "environment NCCL_IB_GID_INDEX=" + line() + "\nenvironment NCCL_TOPO_FILE=" + line();
    add("gdrx/calls", probes_ + "\n");
  }

  /// Empty where there is no report.
  std::string script() const {
    const auto report = diagnose(host_of(topo::Snapshot{"hostile", files_}));
    return report ? tools::doctor_script(*report) : std::string();
  }

 private:
  void add(const std::string& path, const std::string& text,
           topo::FileTree::Kind kind = topo::FileTree::Kind::file) {
    static_cast<void>(files_->add(path, kind, text));  // a name that no tree takes is left out
  }
  std::string name() {
    std::string text = text_();
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
    return text.empty() || text == "." || text == ".." ? "none" : text.substr(0, 200);
  }
  std::string line() {
    std::string text = text_();
    std::replace(text.begin(), text.end(), '\n', ';');
    return text;
  }
  std::string word() {
    std::string text = line();
    std::replace(text.begin(), text.end(), ' ', ';');
    return text;
  }
  void pci(const std::string& bus, const std::string& above, const char* vendor, const char* kind) {
    const std::string at =
        "sys/devices/pci0000:" + (above.empty() ? bus : above.substr(1)).substr(5, 2) + above +
        "/" + bus;
    add(at + "/class", kind);
    add(at + "/vendor", vendor);
    add(at + "/numa_node", "-1");
    add(at + "/current_link_width", "4");
    add(at + "/max_link_width", "16");
    std::string config(256, '\0');  // PCI Express at 0x60, with reads of 128 bytes
    config[0x34] = 0x60;
    config[0x60] = 0x10;
    add(at + "/config", config);
    add("sys/bus/pci/devices/" + bus, "../../../" + at.substr(4), topo::FileTree::Kind::link);
  }
  std::string nic(const std::string& bus, const std::string& layer) {
    const std::string nic = name();
    const std::string at = "sys/devices/pci0000:20/" + bus + "/infiniband/" + nic;
    const std::string interface = name();
    const std::string port = at + "/ports/" + (layer == "Ethernet" ? name() : "1");
    add(at + "/device", "../..", topo::FileTree::Kind::link);
    add(port + "/state", "1: DOWN");
    add(port + "/rate", "100 Gb/sec (2X HDR)");
    add(port + "/link_layer", layer);
    for (const char* counter : {"counters/link_downed", "hw_counters/rp_cnp_ignored",
                                "hw_counters/np_cnp_sent", "hw_counters/rp_cnp_handled"}) {
      add(port + "/" + counter, "7");
    }
    add(port + "/gids/0", "fe80:0000:0000:0000:0e42:a1ff:fe00:0001");
    add(port + "/gid_attrs/types/0", "RoCE v2");
    add(port + "/gid_attrs/ndevs/0", interface);
    add("sys/class/net/" + interface + "/mtu", "1500");
    add("sys/class/net/" + interface + "/ecn/roce_np/enable/3", "0");
    add("sys/class/infiniband/" + nic, "../../" + at.substr(4), topo::FileTree::Kind::link);
    const std::string node = "uverbs" + name();
    add("sys/class/infiniband_verbs/" + node + "/ibdev", nic);
    probes_ += "open /dev/infiniband/" + node + " 13\n";
    probes_ += "dcb " + interface + " pfc=0 sent=0 received=0 dscp=0\n";
    return nic;
  }

  std::function<std::string()> text_;
  std::shared_ptr<topo::FileTree> files_ = std::make_shared<topo::FileTree>();
  std::string probes_;
};

struct Shell {
  bool parses = false;                             // bash -n
  std::vector<std::vector<std::string>> commands;  // each as its words
};

/// A shell that has no command but one, which says how it was called. Paths lose their slashes and
/// redirections become words: nothing of the script can touch this machine.
inline Shell only_echo(std::string script) {
  const std::string base =
      (std::filesystem::temp_directory_path() / fmt::format("gdrx-echo-{}", getpid())).string();
  std::ofstream(base + ".sh", std::ios::binary) << script;
  std::string tame;
  for (const char c : script) {
    if (c == '>' || c == '<') {
      tame += " R ";
    } else {
      tame += c == '/' ? '%' : c;
    }
  }
  std::ofstream(base + ".echo", std::ios::binary)
      << "exec 3>&1\n"
         "command_not_found_handle() { builtin printf '%s\\0' \"$#\" \"$@\" >&3; }\n"
         "for each in echo printf kill eval cd source exit test . export unset set; do\n"
         "  builtin eval \"$each() { command_not_found_handle $each \\\"\\$@\\\"; }\"\ndone\n"
      << tame;
  const std::string run = fmt::format(
      "/bin/bash -n {0}.sh 2>/dev/null && echo parses && "
      "exec env -i PATH=/nonexistent /bin/bash {0}.echo --apply 2>/dev/null",
      base);
  std::string said;
  std::FILE* pipe = popen(run.c_str(), "r");
  if (pipe == nullptr) return {};
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
  pclose(pipe);
  std::filesystem::remove(base + ".sh");
  std::filesystem::remove(base + ".echo");

  Shell shell;
  shell.parses = said.starts_with("parses\n");
  std::vector<std::string> words;
  for (std::size_t at = 7; at < said.size();) {
    const std::size_t end = std::min(said.find('\0', at), said.size());
    words.push_back(said.substr(at, end - at));
    at = end + 1;
  }
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t count = std::strtoul(words[at].c_str(), nullptr, 10);
    const std::size_t last = std::min(words.size(), at + 1 + count);
    shell.commands.emplace_back(words.begin() + static_cast<std::ptrdiff_t>(at + 1),
                                words.begin() + static_cast<std::ptrdiff_t>(last));
    at = last;
  }
  return shell;
}

inline constexpr const char* kBegin = "Qa";  // of what the host said, and its end
inline constexpr const char* kEnd = "Qz";

inline std::size_t times(const std::string& text, const char* what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// Empty, or which word of a script is the host's: its texts are each between kBegin and kEnd.
/// `own` are the commands that gdrx itself has written.
inline std::string words_of_the_host(const Shell& shell, const std::vector<std::string>& own) {
  if (!shell.parses) return "no shell parses it";
  for (const auto& words : shell.commands) {
    if (words.empty() || std::find(own.begin(), own.end(), words[0]) == own.end()) {
      return "a command of the host's: " + (words.empty() ? std::string() : words[0]);
    }
    for (const std::string& word : words) {
      const std::size_t begins = times(word, kBegin);
      if (begins != times(word, kEnd)) return "a part of a word: " + word;
      if (begins == 0 && word.find("EVIL") != word.npos) return "a word of its own: " + word;
      if (begins > 0 && word.starts_with('-')) return "an option: " + word;
    }
  }
  return {};
}

/// The commands that a harmless host's script has.
inline std::vector<std::string> own_commands() {
  int number = 0;
  const HostileHost harmless([&number] { return fmt::format("name{}", number++); });
  std::vector<std::string> own;
  for (const auto& words : only_echo(harmless.script()).commands) {
    if (!words.empty()) own.push_back(words[0]);
  }
  return own;
}

}  // namespace gdrx::doctor::test
