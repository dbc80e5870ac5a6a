// SPDX-License-Identifier: Apache-2.0
// NCCL's variables that mean the same here, so that a tuned cluster works unchanged.
#include "config_nccl.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace gdrx {
namespace {

using Parse = std::function<Result<void>(Config&, std::string_view)>;

Result<int> parse_whole(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    return fail(Errc::invalid_argument,
                fmt::format("a whole number from {} to {} is expected", least, most));
  }
  return value;
}

Variable whole(std::string_view name, std::string_view help, int IbConfig::*member, int least,
               int most) {
  const Parse parse = [=](Config& config, std::string_view text) -> Result<void> {
    config.ib.*member = GDRX_TRY(parse_whole(text, least, most));
    return {};
  };
  return {name, "", help, parse,
          [member](const Config& c) { return std::to_string(c.ib.*member); }};
}

Variable flag(std::string_view name, std::string_view help, bool IbConfig::*member) {
  const Parse parse = [=](Config& config, std::string_view text) -> Result<void> {
    config.ib.*member = GDRX_TRY(parse_whole(text, 0, 1)) != 0;
    return {};
  };
  return {name, "", help, parse,
          [member](const Config& c) { return std::string(c.ib.*member ? "1" : "0"); }};
}

Result<void> parse_family(Config& config, std::string_view text) {
  if (text != "AF_INET" && text != "AF_INET6") {
    return fail(Errc::invalid_argument, "AF_INET or AF_INET6 is expected");
  }
  config.ib.ipv6 = text == "AF_INET6";
  return {};
}

// "10.1.0.0/16", "fd00::/8"
Result<void> parse_range(Config& config, std::string_view text) {
  config.ib.range = {};
  if (text.empty()) return {};
  const auto slash = text.find('/');
  const std::string address(text.substr(0, slash));
  IbRange range;
  const bool v4 = inet_pton(AF_INET, address.c_str(), range.prefix.data() + 12) == 1;
  if (v4) {
    range.prefix[10] = range.prefix[11] = 0xff;
  } else if (inet_pton(AF_INET6, address.c_str(), range.prefix.data()) != 1) {
    return fail(Errc::invalid_argument, "an address and a length such as 10.1.0.0/16 is expected");
  }
  const int most = v4 ? 32 : 128;
  int bits = most;
  if (slash != std::string_view::npos)
    bits = GDRX_TRY(parse_whole(text.substr(slash + 1), 0, most));
  range.bits = bits + (v4 ? 96 : 0);
  range.text = std::string(text);
  config.ib.range = range;
  return {};
}

// "2.28.9", coded as NCCL codes it from 2.9 on
Result<void> parse_version(Config& config, std::string_view text) {
  const auto first = text.find('.');
  const auto second = text.find('.', first == std::string_view::npos ? first : first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) {
    return fail(Errc::invalid_argument, "a version such as 2.28.9 is expected");
  }
  const int major = GDRX_TRY(parse_whole(text.substr(0, first), 2, 2));
  const int minor = GDRX_TRY(parse_whole(text.substr(first + 1, second - first - 1), 9, 99));
  const int patch = GDRX_TRY(parse_whole(text.substr(second + 1), 0, 99));
  config.nccl_version = major * 10000 + minor * 100 + patch;
  return {};
}

}  // namespace

std::vector<Variable> nccl_variables() {
  using Ib = IbConfig;
  return {
      {"GDRX_NCCL_VERSION", "", "libgdrx-nccl.so: the version of NCCL that it says it is",
       parse_version,
       [](const Config& c) {
         const int v = c.nccl_version;
         return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
       }},
      {"NCCL_IB_HCA", "", "as GDRX_HCA, which comes first",
       [](Config& c, std::string_view text) -> Result<void> {
         c.ib.hca = std::string(text);
         return {};
       },
       [](const Config& c) { return c.ib.hca; }},
      whole("NCCL_IB_GID_INDEX", "entry of the GID table; -1: chosen", &Ib::gid_index, -1, 255),
      {"NCCL_IB_ADDR_FAMILY", "", "of the GID that is chosen: AF_INET, AF_INET6", parse_family,
       [](const Config& c) { return std::string(c.ib.ipv6 ? "AF_INET6" : "AF_INET"); }},
      {"NCCL_IB_ADDR_RANGE", "", "a GID of this range is chosen first, such as 10.1.0.0/16",
       parse_range, [](const Config& c) { return c.ib.range.text; }},
      whole("NCCL_IB_ROCE_VERSION_NUM", "of the GID that is chosen", &Ib::roce_version, 1, 2),
      whole("NCCL_IB_TC", "traffic class", &Ib::traffic_class, 0, 255),
      whole("NCCL_IB_SL", "service level", &Ib::service_level, 0, 15),
      whole("NCCL_IB_TIMEOUT", "wait for an acknowledgement: 4.096 us * 2^this", &Ib::timeout, 1,
            31),
      whole("NCCL_IB_RETRY_CNT", "repeats before a queue pair fails", &Ib::retries, 0, 7),
      whole("NCCL_IB_PKEY", "index of the partition key", &Ib::pkey_index, 0, 65535),
      whole("NCCL_IB_QPS_PER_CONNECTION", "queue pairs of a rail to one peer", &Ib::qps, 1, 8),
      whole("NCCL_IB_ADAPTIVE_ROUTING",
            "1: long messages by plain writes, which switches may reroute; 0: never; -1: on "
            "InfiniBand",
            &Ib::adaptive_routing, -1, 1),
      whole("NCCL_IB_AR_THRESHOLD", "bytes from which on that is done", &Ib::adaptive_threshold, 0,
            1 << 30),
      whole("NCCL_IB_PCI_RELAXED_ORDERING", "of registered memory: 0 off, 1 on, 2 where it can be",
            &Ib::relaxed_ordering, 0, 2),
      flag("NCCL_IB_ECE_ENABLE", "1: enhanced connection establishment where both NICs have it",
           &Ib::ece),
      flag("NCCL_DMABUF_ENABLE", "0: GPU memory is not registered by dma-buf", &Ib::dma_buf),
  };
}

}  // namespace gdrx
