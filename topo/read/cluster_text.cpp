// SPDX-License-Identifier: Apache-2.0
// "2 hosts x 8 H200, one 400 Gb/s NIC a GPU": a host in words, for machines that are not there.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "topo/model/pci_vendor.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::topo {
namespace {

struct Model {
  std::string_view name;
  std::uint16_t device;
  int nvlinks;  // per GPU, all to NVSwitches in an 8-GPU board
  double gigatransfers;
  int sm;
};
// Published figures of the SXM boards.
constexpr std::array kModels{
    Model{"V100", 0x1db1, 0, 8, 70},    Model{"A100", 0x20b0, 12, 16, 80},
    Model{"H100", 0x2330, 18, 32, 90},  Model{"H200", 0x2335, 18, 32, 90},
    Model{"B200", 0x2901, 18, 32, 100}, Model{"L40S", 0x26b9, 0, 16, 89},
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',') {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      // "400Gb/s" and "8x" are two words each; "h200" is one.
      const bool all_digits = !word.empty() && to_int(word, -1) >= 0;
      if (all_digits && std::isdigit(static_cast<unsigned char>(c)) == 0) {
        words.push_back(std::move(word));
        word.clear();
      }
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

// "8" or "eight"; 0 where it is no number.
int count_of(const std::string& word) {
  constexpr std::array<std::string_view, 9> kNames{"no",   "one", "two",   "three", "four",
                                                   "five", "six", "seven", "eight"};
  if (word == "a" || word == "an") return 1;
  for (std::size_t i = 1; i < kNames.size(); ++i) {
    if (word == kNames[i]) return static_cast<int>(i);
  }
  return to_int(word, 0);
}

struct Words {
  int hosts = 1;
  int gpus = 0;
  const Model* model = nullptr;
  std::string model_name;
  int nics = 0;
  double gigabits = 0;
  bool per_gpu = false;
};

bool is_any(const std::string& word, std::initializer_list<std::string_view> of) {
  return std::find(of.begin(), of.end(), word) != of.end();
}

Result<Words> understand(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::invalid_argument,
                fmt::format("{} in '{}'; say it as '2 hosts x 8 H200, one 400 Gb/s NIC a GPU'", why,
                            text.substr(0, 60)));
  };
  if (text.size() > 400) return wrong("too many words");
  Words said;
  int number = 0;
  int count = 0;  // the number before the rate, as in "one 400 Gb/s NIC"
  bool nics_said = false;
  for (const std::string& word : words_of(text)) {
    if (count_of(word) > 0 && !(nics_said && is_any(word, {"a", "an"}))) {
      if (number > 0) count = number;
      number = count_of(word);
    } else if (is_any(word, {"host", "hosts", "node", "nodes"})) {
      said.hosts = number;
      number = 0;
    } else if (is_any(word, {"gb/s", "gbps", "gbit/s", "g"})) {
      said.gigabits = number;
      number = 0;
    } else if (is_any(word, {"nic", "nics", "hca", "hcas"})) {
      said.nics = number > 0 ? number : count;
      if (said.nics == 0) said.nics = 1;
      nics_said = true;
      number = count = 0;
    } else if (nics_said && is_any(word, {"gpu", "gpus"})) {
      said.per_gpu = true;
    } else if (is_any(word, {"x", "of", "with", "and", "a", "an", "per", "each", "gpus", "gpu"})) {
      continue;
    } else if (said.gpus == 0 && number > 0) {
      said.gpus = number;
      number = 0;
      said.model_name = word;
      std::transform(word.begin(), word.end(), said.model_name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      const auto known = std::find_if(kModels.begin(), kModels.end(), [&](const Model& model) {
        return said.model_name == model.name;
      });
      said.model = known == kModels.end() ? nullptr : &*known;
    } else {
      return wrong(fmt::format("'{}' is not understood", word.substr(0, 40)));
    }
  }
  if (said.gpus == 0) return wrong("no number of GPUs and model");
  if (said.hosts < 1 || said.hosts > 65536) return wrong("no host");
  if (said.gpus > 64 || said.nics > 64) return wrong("more devices than a host has");
  return said;
}

class Builder {
 public:
  explicit Builder(const Words& said) : said_(said) {
    parts_.source = "a description";
    parts_.nvlink_known = said.model != nullptr;
  }

  Parts build() {
    const int sockets = said_.gpus > 1 ? 2 : 1;
    for (int socket = 0; socket < sockets; ++socket)
      parts_.numa.push_back({socket, socket, {}, {}});
    const int nics = said_.per_gpu ? said_.nics * said_.gpus : said_.nics;
    const int count = nics == 0 ? said_.gpus : std::min(nics, said_.gpus);
    std::vector<std::size_t> switches;
    for (int i = 0; i < count; ++i) switches.push_back(add_switch(i, i * sockets / count));
    for (int gpu = 0; gpu < said_.gpus; ++gpu) {
      Gpu one;
      one.node = device(switches, gpu * count / said_.gpus, 0x030200, vendor::kNvidia,
                        said_.model ? said_.model->device : 0);
      one.model = said_.model_name;
      one.sm = said_.model ? said_.model->sm : 0;
      parts_.gpus.push_back(one);
      if (said_.model && said_.model->nvlinks > 0) {
        parts_.nvlinks.push_back({one.node, kNone, said_.model->nvlinks, 0});
      }
    }
    for (int nic = 0; nic < nics; ++nic) {
      Nic one;
      one.name = fmt::format("mlx5_{}", nic);
      one.node = device(switches, nic * count / nics, 0x020700, vendor::kMellanox, 0x1021);
      one.gigabits = said_.gigabits;
      parts_.nics.push_back(one);
    }
    parts_.notes.push_back(
        "made from words: two sockets, and GPUs under one PCIe switch with their NICs, are "
        "assumed");
    if (said_.model && said_.model->nvlinks > 0) {
      parts_.notes.push_back(fmt::format("{}: {} NVLinks of each GPU to NVSwitches are assumed",
                                         said_.model_name, said_.model->nvlinks));
    }
    if (!said_.model) {
      parts_.notes.push_back(said_.model_name +
                             " is no model known here: no link between GPUs and no speed is "
                             "assumed");
    }
    return std::move(parts_);
  }

 private:
  std::size_t add(PciNode node) {
    parts_.nodes.push_back(std::move(node));
    return parts_.nodes.size() - 1;
  }

  // A host bridge, its root port and a switch.
  std::size_t add_switch(int number, int socket) {
    const auto bus = static_cast<std::uint8_t>(3 * number + 1);
    PciNode root;
    root.kind = NodeKind::root;
    root.name = fmt::format("pci{:04x}:{:02x}", socket, bus);
    root.numa = socket;
    PciNode port;
    port.kind = NodeKind::pci_switch;
    port.parent = add(root);
    port.bus = BusId{static_cast<std::uint32_t>(socket), bus, 0, 0};
    port.name = to_string(*port.bus);
    port.class_code = 0x060400;
    port.link = link();
    return add(port);
  }

  // Each device on a downstream port of its own: device numbers of one bus stand for them.
  std::size_t device(const std::vector<std::size_t>& switches, int which, std::uint32_t class_code,
                     std::uint16_t vendor, std::uint16_t device_id) {
    PciNode node;
    node.parent = switches[static_cast<std::size_t>(which)];
    const BusId above = *parts_.nodes[node.parent].bus;
    const int number = used_[above]++;
    node.bus =
        BusId{above.domain, static_cast<std::uint8_t>(above.bus + 1 + number / 128),
              static_cast<std::uint8_t>(number % 32), static_cast<std::uint8_t>(number / 32 % 4)};
    node.name = to_string(*node.bus);
    node.class_code = class_code;
    node.vendor = vendor;
    node.device = device_id;
    node.link = link();
    return add(node);
  }

  Link link() const { return said_.model ? Link{said_.model->gigatransfers, 16, 0} : Link{}; }

  const Words& said_;
  Parts parts_;
  std::map<BusId, int> used_;
};

}  // namespace

Result<Cluster> parse_cluster(std::string_view text) {
  const Words said = GDRX_TRY(understand(text));
  Topology topology = GDRX_TRY(Topology::make(Builder(said).build()));
  return Cluster{said.hosts, std::move(topology)};
}

}  // namespace gdrx::topo
