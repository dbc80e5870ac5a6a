// SPDX-License-Identifier: Apache-2.0
// Snapshots: what is in them, what is not, and bytes from anywhere.
#include "gdrx/snapshot.hpp"

#include <chrono>

#include "tests/doctor/host_tree.hpp"
#include "tools/topo/topo_view.hpp"
#include "topo/read/tar.hpp"

namespace gdrx::doctor {
namespace {

using test::HostTree;
using topo::FileTree;
using topo::Packing;
using topo::TarWriter;

std::string capture_of(const HostTree& host, bool keep_names = false) {
  auto bytes = capture(host.host(), {keep_names});
  EXPECT_TRUE(bytes) << bytes.error().what;
  return bytes ? *bytes : std::string();
}

std::shared_ptr<const FileTree> files_of(const std::string& bytes) {
  auto snapshot = topo::parse_snapshot(bytes, "host.tar.gz");
  EXPECT_TRUE(snapshot) << snapshot.error().what;
  return snapshot ? snapshot->files : std::make_shared<const FileTree>();
}

// All text that an archive holds, names too.
std::string text_of(const std::string& bytes) {
  const auto plain = topo::gunzip(bytes, topo::kMostSnapshotBytes);
  EXPECT_TRUE(plain);
  return plain ? *plain : std::string();
}

const std::string kGids = test::kVerbs1 + std::string("/ports/1/gids/");
const std::string kConfig = "sys/bus/pci/devices/" + test::kIb.substr(test::kIb.size() - 12);

TEST(Snapshot, OfTheSameHostHasTheSameBytes) {
  const HostTree host;
  EXPECT_EQ(capture_of(host), capture_of(host));
}

TEST(Snapshot, GivesTheTopologyOfItsHost) {
  const HostTree host;
  const auto from_files = topo::discover({"snapshot", false, files_of(capture_of(host))});
  const auto from_host = topo::discover({host.root(), false});
  ASSERT_TRUE(from_files);
  ASSERT_TRUE(from_host);
  ASSERT_EQ(from_files->devices(), 3u);
  EXPECT_EQ(from_files->nodes().size(), from_host->nodes().size());
  for (std::size_t i = 1; i < from_host->devices(); ++i) {
    const auto path = [&](const topo::Topology& in) {
      const topo::Path found = topo::path(in, in.gpu(0), topo::DeviceId(static_cast<unsigned>(i)));
      return fmt::format("{} {} {}", to_string(found.smi), to_string(found.nccl),
                         found.bottleneck.value_or(0));
    };
    EXPECT_EQ(path(*from_files), path(*from_host));
  }
}

TEST(Snapshot, KeepsNoAddressSerialNumberOrCommandLine) {
  HostTree host;
  host.write("proc/cmdline", "root=UUID=1234-abcd iommu=pt password=secret");
  host.write("proc/sys/kernel/hostname", "gpu-node-17");
  host.answers.environment = {"HOME=/home/somebody", "NCCL_IB_DISABLE=1",
                              "NCCL_TOPO_FILE=/home/somebody/x.xml"};
  // A serial number capability behind ATS.
  host.config(test::kIb, 0x172, 0x2001);
  host.config(test::kIb, 0x200, 0x0003);
  for (const std::size_t at : {0x204u, 0x206u, 0x208u, 0x20au}) host.config(test::kIb, at, 0xbeef);
  const std::string bytes = capture_of(host);
  const std::string text = text_of(bytes);
  for (const char* secret : {"c0a8:0a01", "0e42:a1ff", "1234-abcd", "secret", "gpu-node",
                             "somebody", "\xef\xbe\xef\xbe", "HOME"}) {
    EXPECT_EQ(text.find(secret), text.npos) << secret;
  }
  const auto files = files_of(bytes);
  EXPECT_EQ(files->read("proc/cmdline"), "iommu=pt\n");
  EXPECT_NE(files->read("gdrx/calls").find("NCCL_IB_DISABLE=1"), std::string::npos);
  EXPECT_EQ(files->read(kConfig + "/config").size(), 4096u);
}

TEST(Snapshot, KeepsNamesWhereItIsAskedTo) {
  HostTree host;
  host.write("proc/cmdline", "root=UUID=1234-abcd iommu=pt");
  const auto files = files_of(capture_of(host, true));
  EXPECT_EQ(files->read(kGids + "3"), "0000:0000:0000:0000:0000:ffff:c0a8:0a01\n");
  EXPECT_EQ(files->read("proc/cmdline"), "root=UUID=1234-abcd iommu=pt\n");
}

TEST(Snapshot, ReplacesEqualAddressesByEqualOnes) {
  HostTree host;
  const std::string mapped = "0000:0000:0000:0000:0000:ffff:";
  host.write(kGids + "4", mapped + "c0a8:0a01");  // as 3
  host.write(kGids + "5", mapped + "c0a8:0a02");  // the same subnet
  host.write(kGids + "6", mapped + "c0a9:0a02");  // another
  const auto files = files_of(capture_of(host));
  const auto gid = [&](const char* index) { return files->read(kGids + index); };
  const auto net = [&](const char* index) { return gid(index).substr(0, 37); };
  EXPECT_EQ(gid("3"), gid("4"));
  EXPECT_NE(gid("3"), gid("5"));
  EXPECT_EQ(net("3"), net("5"));
  EXPECT_NE(net("5"), net("6"));
  EXPECT_TRUE(gid("0").starts_with("fe80:"));
  EXPECT_FALSE(files->exists(kGids + "7"));  // an empty slot
}

TEST(Snapshot, HasNoAddressInANameNoLidAndNoLastOctet) {
  HostTree host;
  const std::string mac = "enx0c42a1fe0017";
  const std::string guid = "ibx98039b03009a4c1e";
  const std::string port = test::kVerbs1 + std::string("/ports/1");
  for (const char* index : {"0", "3"}) host.write(port + "/gid_attrs/ndevs/" + index, mac);
  host.write("sys/class/net/" + mac + "/mtu", "9000");
  host.write("sys/class/net/" + guid + "/mtu", "4092");
  host.write(port + "/lid", "0x1a2b");
  host.write(kGids + "3", "0000:0000:0000:0000:0000:ffff:c0a8:0afb");
  host.answers.dcb.emplace(mac, Dcb{1u << 3, 0, 0, true});
  host.answers.verbs->devices.push_back({"rocex0c42a1fe0017", 0, 0, 5, 5});
  const std::string bytes = capture_of(host);
  const std::string text = text_of(bytes);
  for (const char* secret : {"0c42a1", "98039b", "1a2b", "0afb"}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
  }
  EXPECT_NE(text_of(capture_of(host, true)).find("0c42a1fe0017"), std::string::npos);
  // The same by the same: the port's interface is still found.
  const auto files = files_of(bytes);
  const std::string shown = files->read(port + "/gid_attrs/ndevs/0");
  EXPECT_EQ(files->read("sys/class/net/" + shown.substr(0, shown.find('\n')) + "/mtu"), "9000\n");
}

// Two sockets of four switches each, with a GPU and a NIC below every switch.
std::string eight_gpus() {
  TarWriter tar(Packing::gzip);
  for (int i = 0; i < 8; ++i) {
    const std::string up = fmt::format("sys/devices/pci0000:{0}0/0000:{0}0:01.0/0000:{0}1:00.0", i);
    const auto put = [&](const std::string& chain, const char* vendor, const char* kind) {
      const std::string name = chain.substr(chain.rfind('/') + 1);
      const auto file = [&](const char* what, const std::string& text) {
        tar.add(fmt::format("{}/{}", chain, what), FileTree::Kind::file, text + "\n");
      };
      file("class", kind);
      file("vendor", vendor);
      file("numa_node", i < 4 ? "0" : "1");
      for (const char* which : {"current", "max"}) {
        file(fmt::format("{}_link_speed", which).c_str(), "32.0 GT/s PCIe");
        file(fmt::format("{}_link_width", which).c_str(), "16");
      }
      tar.add("sys/bus/pci/devices/" + name, FileTree::Kind::link, "../../.." + chain.substr(3));
      return chain;
    };
    put(up.substr(0, up.rfind('/')), "0x8086", "0x060400");
    put(up, "0x1000", "0x060400");
    for (const int slot : {0, 1}) {
      put(fmt::format("{}/0000:{}2:0{}.0", up, i, slot), "0x1000", "0x060400");
    }
    put(fmt::format("{0}/0000:{1}2:00.0/0000:{1}3:00.0", up, i), "0x10de", "0x030200");
    const std::string nic =
        put(fmt::format("{0}/0000:{1}2:01.0/0000:{1}4:00.0", up, i), "0x15b3", "0x020700");
    const std::string device = fmt::format("{}/infiniband/mlx5_{}", nic, i);
    tar.add(device + "/ports/1/rate", FileTree::Kind::file, "400 Gb/sec (4X NDR)\n");
    tar.add(device + "/device", FileTree::Kind::link, "../..");
    tar.add(fmt::format("sys/class/infiniband/mlx5_{}", i), FileTree::Kind::link,
            "../.." + device.substr(3));
  }
  return *tar.finish();
}

TEST(Snapshot, OfEightGpusIsReadAndShownWithinATenthOfASecond) {
  const std::string bytes = eight_gpus();
  auto best = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 5; ++round) {  // the machine may be busy with something else
    const auto begin = std::chrono::steady_clock::now();
    const auto snapshot = topo::parse_snapshot(bytes, "host.tar.gz");
    ASSERT_TRUE(snapshot) << snapshot.error().what;
    const auto topology = topo::discover({"host.tar.gz", false, snapshot->files});
    ASSERT_TRUE(topology) << topology.error().what;
    const std::string text = tools::matrix_text(*topology, {}) + tools::map_text(*topology, {});
    best = std::min(best, std::chrono::steady_clock::now() - begin);
    EXPECT_EQ(topology->devices(), 16u);
    EXPECT_NE(text.find("PIX"), std::string::npos) << text;
  }
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(best, std::chrono::milliseconds(100));
#endif
}

TEST(Snapshot, SaysWhatLibrariesAnswered) {
  HostTree host;
  host.answers.nvml = fail(Errc::mismatch, "nvmlInit: error 18");
  host.answers.cuda->devices[0].dmabuf_export = "two words";
  const auto snapshot = topo::parse_snapshot(capture_of(host), "x");
  ASSERT_TRUE(snapshot);
  const Probes probes = host_of(*snapshot).probes;
  const auto cuda = probes.cuda();
  ASSERT_TRUE(cuda);
  EXPECT_EQ(cuda->driver, 12040);
  EXPECT_EQ(cuda->devices[0].dmabuf_export, "two words");
  EXPECT_EQ(probes.nvml().error().code, Errc::mismatch);
  EXPECT_EQ(probes.verbs()->devices.size(), 2u);
  EXPECT_EQ(probes.limit(Resource::memlock), kUnlimited);
  EXPECT_EQ(probes.open_errno("/dev/infiniband/uverbs0"), 0);
  EXPECT_EQ(probes.open_errno("/dev/infiniband/uverbs7"), ENOENT);
}

TEST(Snapshot, OfASnapshotIsTheSnapshot) {
  const HostTree host;
  const std::string first = capture_of(host, true);
  const auto snapshot = topo::parse_snapshot(first, "x");
  ASSERT_TRUE(snapshot);
  const auto second = capture(host_of(*snapshot), {true});
  ASSERT_TRUE(second);
  EXPECT_EQ(text_of(*second), text_of(first));
}

// What is wrong, in one line.
std::string refusal(const std::string& bytes) {
  const auto snapshot = topo::parse_snapshot(bytes, "bad.tar.gz");
  if (snapshot) return "taken";
  const std::string text = describe(snapshot.error());
  EXPECT_EQ(text.find('\n'), text.npos) << text;
  EXPECT_TRUE(text.starts_with("bad.tar.gz: ")) << text;
  return text;
}

std::string packed(const std::string& path, FileTree::Kind kind, const std::string& text,
                   Packing packing = Packing::none) {
  TarWriter tar(packing);
  tar.add(path, kind, text);
  return *tar.finish();
}

TEST(Snapshot, FromAnywhereIsRefusedWithTheReason) {
  const auto file = FileTree::Kind::file;
  const std::string good = packed("sys/x", file, "1");
  EXPECT_EQ(refusal(good), "taken");
  EXPECT_NE(refusal("").find("empty"), std::string::npos);
  EXPECT_NE(refusal(std::string(4096, 'x')).find("no archive"), std::string::npos);
  EXPECT_NE(refusal(good.substr(0, 700)).find("cut off"), std::string::npos);
  EXPECT_NE(refusal(packed("../etc/passwd", file, "1")).find("leads out"), std::string::npos);
  EXPECT_NE(refusal(packed("sys/../../x", file, "1")).find("leads out"), std::string::npos);
  EXPECT_NE(refusal(packed("/etc/passwd", file, "1")).find("absolute"), std::string::npos);
  std::string damaged = good;
  damaged[3] ^= 1;
  EXPECT_NE(refusal(damaged).find("damaged"), std::string::npos);
  std::string deep = "sys";
  for (int i = 0; i < 200; ++i) deep += "/x";
  EXPECT_NE(refusal(packed(deep, file, "1")).find("too deep"), std::string::npos);
  TarWriter twice(Packing::none);
  twice.add("sys/x", file, "1");
  twice.add("sys/x", file, "2");
  EXPECT_NE(refusal(*twice.finish()).find("twice"), std::string::npos);
  TarWriter through(Packing::none);
  through.add("sys", FileTree::Kind::link, "/etc");
  through.add("sys/passwd", file, "1");
  EXPECT_NE(refusal(*through.finish()).find("through a file or a link"), std::string::npos);
}

TEST(Snapshot, ThatIsCompressedIsCheckedToo) {
  const std::string good = packed("sys/x", FileTree::Kind::file, "1", Packing::gzip);
  EXPECT_EQ(refusal(good), "taken");
  for (std::size_t size = 2; size + 9 < good.size(); ++size) {
    EXPECT_NE(refusal(good.substr(0, size)), "taken") << size;
  }
  const std::string much(topo::kMostSnapshotBytes + 1, '\0');
  EXPECT_NE(
      refusal(packed("sys/x", FileTree::Kind::file, much, Packing::gzip)).find("more than 64 MiB"),
      std::string::npos);
}

TEST(Snapshot, OfManyFilesThatAreLargeTogetherIsRefused) {
  TarWriter tar(Packing::gzip);
  const std::string much(topo::kMostSnapshotBytes / 4, '\0');
  for (int i = 0; i < 5; ++i) tar.add(fmt::format("sys/{}", i), FileTree::Kind::file, much);
  EXPECT_NE(refusal(*tar.finish()).find("more than 64 MiB"), std::string::npos);
}

TEST(Snapshot, ThatIsCutOffBetweenTwoFilesIsRefused) {
  TarWriter tar(Packing::none);
  tar.add("sys/a", FileTree::Kind::file, "1");
  tar.add("sys/b", FileTree::Kind::file, "2");
  EXPECT_NE(refusal(tar.finish()->substr(0, 1024)).find("cut off"), std::string::npos);
}

TEST(Snapshot, WithWrongBytesIsReadOrRefused) {
  const std::string good = text_of(capture_of(HostTree()));
  std::uint32_t state = 1;
  const auto random = [&](std::size_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  int judged = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    // Below gdrx/ and in contents: a header's sum would refuse most of the others.
    const std::size_t probes = bad.find("# what calls answered");
    const std::size_t length = bad.find('\0', probes) - probes;
    for (int i = 0; i < 8; ++i) {
      const std::size_t at = round % 2 == 0 ? random(bad.size()) : probes + random(length);
      bad[at] = static_cast<char>(random(256));
    }
    const auto snapshot = topo::parse_snapshot(bad, "bad");
    if (!snapshot) continue;
    const auto report = diagnose(host_of(*snapshot));
    judged += report ? 1 : 0;
  }
  EXPECT_GT(judged, 100);
}

TEST(FileTree, LinksLeadInsideOrNowhere) {
  FileTree tree;
  ASSERT_TRUE(tree.add("sys/a/value", FileTree::Kind::file, "1"));
  ASSERT_TRUE(tree.add("sys/up", FileTree::Kind::link, "../../../../sys/a"));
  ASSERT_TRUE(tree.add("sys/absolute", FileTree::Kind::link, "/sys/a"));
  ASSERT_TRUE(tree.add("sys/loop", FileTree::Kind::link, "loop"));
  ASSERT_TRUE(tree.add("sys/out", FileTree::Kind::link, "/etc/passwd"));
  EXPECT_EQ(tree.read("sys/up/value"), "1");
  EXPECT_EQ(tree.read("sys/absolute/value"), "1");
  EXPECT_FALSE(tree.exists("sys/loop"));
  EXPECT_FALSE(tree.exists("sys/out"));
  EXPECT_EQ(tree.link("sys/out"), "/etc/passwd");
  EXPECT_FALSE(tree.add("sys/long", FileTree::Kind::link, std::string(5000, 'x')));
}

}  // namespace
}  // namespace gdrx::doctor
