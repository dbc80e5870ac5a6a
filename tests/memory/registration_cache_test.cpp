// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/registration_cache.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace gdrx {
namespace {

/// Counts what is registered with it; nothing else of it is used.
class CountingDevice final : public Device {
 public:
  struct Region final : MemoryRegion {
    Region(CountingDevice& device, std::span<std::byte> bytes) : device_(device), bytes_(bytes) {
      ++device_.live;
    }
    ~Region() override { --device_.live; }
    std::span<std::byte> bytes() const noexcept override { return bytes_; }
    Blob export_key() const override { return {}; }
    CountingDevice& device_;
    std::span<std::byte> bytes_;
  };
  Blob address() const override { return {}; }
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory,
                                                        MemoryKind) override {
    if (refuses) return fail(Errc::system, "no more");
    ++made;
    return std::unique_ptr<MemoryRegion>(std::make_unique<Region>(*this, memory));
  }
  std::unique_ptr<PinnedMemory> disown(std::unique_ptr<MemoryRegion>) override {
    return std::make_unique<PinnedMemory>();
  }
  Result<std::unique_ptr<MemoryRegion>> allocate_memory(std::size_t) override {
    return fail(Errc::unsupported, "");
  }
  Result<std::unique_ptr<Endpoint>> connect(Rank, std::span<const std::byte>) override {
    return fail(Errc::unsupported, "");
  }
  Result<std::size_t> poll(std::span<Completion>) override { return std::size_t{0}; }
  bool busy() const noexcept override { return false; }
  void isolate_peers() noexcept override {}
  std::string describe() const override { return {}; }
  int made = 0;
  int live = 0;
  bool refuses = false;
};

class RegistrationCacheTest : public testing::Test {
 protected:
  std::span<std::byte> part(std::size_t begin, std::size_t bytes) {
    return std::span(memory_).subspan(begin, bytes);
  }
  RegistrationRef add(std::size_t begin, std::size_t bytes) {
    return *cache_.acquire(part(begin, bytes), MemoryKind::host);
  }
  std::array<std::byte, 4096> memory_{};
  std::shared_ptr<CountingDevice> device_ = std::make_shared<CountingDevice>();
  RegistrationCache cache_{device_};
};

TEST_F(RegistrationCacheTest, FindsWhatIsCoveredWholeAndNothingElse) {
  const RegistrationRef made = add(1000, 500);
  EXPECT_EQ(cache_.find(part(1000, 500)), made);
  EXPECT_EQ(cache_.find(part(1499, 1)), made);
  EXPECT_EQ(cache_.find(part(999, 2)), nullptr);
  EXPECT_EQ(cache_.find(part(1400, 101)), nullptr);
  EXPECT_EQ(cache_.find(part(1500, 1)), nullptr);
  EXPECT_EQ(cache_.counters().hits, 2U);
  EXPECT_EQ(cache_.counters().misses, 3U);
}

TEST_F(RegistrationCacheTest, RegistersOnceForSeveralOwnersAndEndsWithTheLast) {
  const RegistrationRef one = add(0, 1000);
  const RegistrationRef two = add(100, 100);
  EXPECT_EQ(one, two);
  EXPECT_EQ(device_->made, 1);
  EXPECT_TRUE(cache_.release(one.get()));
  EXPECT_NE(cache_.find(part(0, 10)), nullptr);
  EXPECT_TRUE(cache_.release(two.get()));
  EXPECT_EQ(cache_.find(part(0, 10)), nullptr);
  EXPECT_FALSE(cache_.release(two.get()));
  EXPECT_EQ(cache_.counters().evictions, 1U);
}

TEST_F(RegistrationCacheTest, GivesTheLastHolderWhatIsStillToBeEnded) {
  RegistrationRef one = add(0, 1000);
  EXPECT_EQ(cache_.acquire_known(part(500, 501)), nullptr);
  RegistrationRef two = cache_.acquire_known(part(100, 100));
  ASSERT_EQ(one, two);
  EXPECT_EQ(cache_.owners(one.get()), 2U);
  EXPECT_EQ(cache_.release(std::move(two)), nullptr);
  EXPECT_EQ(device_->live, 1);
  EXPECT_NE(cache_.release(std::move(one)), nullptr);
  EXPECT_EQ(device_->live, 0);
  EXPECT_EQ(cache_.size(), 0U);
}

TEST_F(RegistrationCacheTest, LeavesItsEndToAnOperationThatHoldsItStill) {
  RegistrationRef one = add(0, 1000);
  RegistrationRef operation = one;
  EXPECT_EQ(cache_.release(std::move(one)), nullptr);
  EXPECT_EQ(device_->live, 1);
  operation.reset();
  EXPECT_EQ(device_->live, 0);
}

TEST_F(RegistrationCacheTest, StaysRegisteredUntilTheLastOperationEnds) {
  RegistrationRef owner = add(0, 100);
  RegistrationRef operation = cache_.find(part(0, 100));
  EXPECT_TRUE(cache_.release(owner.get()));
  owner.reset();
  EXPECT_EQ(device_->live, 1);
  operation.reset();
  EXPECT_EQ(device_->live, 0);
}

// The memory was freed and came back at the same address: what stood for it is gone.
TEST_F(RegistrationCacheTest, GivesNothingForMemoryThatWasTakenOut) {
  const RegistrationRef old = add(0, 100);
  (void)add(0, 100);  // a second owner
  EXPECT_TRUE(cache_.remove(old.get()));
  EXPECT_EQ(cache_.find(part(0, 100)), nullptr);
  EXPECT_NE(add(0, 100), old);
}

// Its owner freed it and said nothing; then the same addresses are given out again.
TEST_F(RegistrationCacheTest, NewMemoryNeverGetsWhatStoodForItsAddressesBefore) {
  const RegistrationRef stale = add(0, 1000);
  const RegistrationRef other = add(2000, 100);
  const RegistrationRef fresh = *cache_.acquire_new(part(500, 100), MemoryKind::host);
  EXPECT_NE(fresh, stale);
  EXPECT_EQ(cache_.find(part(0, 10)), nullptr);
  EXPECT_EQ(cache_.find(part(500, 100)), fresh);
  EXPECT_EQ(cache_.find(part(2000, 100)), other);
  EXPECT_EQ(cache_.counters().stale, 1U);
  EXPECT_FALSE(cache_.release(stale.get()));
}

TEST_F(RegistrationCacheTest, TellsARefusalOfTheDeviceAndKeepsNothingOfIt) {
  device_->refuses = true;
  EXPECT_FALSE(cache_.acquire(part(0, 100), MemoryKind::host).has_value());
  EXPECT_FALSE(cache_.acquire({}, MemoryKind::host).has_value());
  EXPECT_EQ(cache_.size(), 0U);
}

// Against a search through all of them, with overlaps of every form.
TEST_F(RegistrationCacheTest, AgreesWithASearchThroughAll) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  std::vector<RegistrationRef> owned;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t begin = below(4000);
    const std::span<std::byte> wanted =
        part(begin, 1 + below(std::min<std::size_t>(96, 4096 - begin)));
    if (below(4) == 0) {
      owned.push_back(*cache_.acquire(wanted, MemoryKind::host));
    } else if (!owned.empty() && below(4) == 0) {
      const std::size_t which = below(owned.size());
      ASSERT_TRUE(cache_.release(owned[which].get()));
      owned.erase(owned.begin() + static_cast<std::ptrdiff_t>(which));
    }
    const auto covers = [&](const RegistrationRef& each) {
      return each->bytes().data() <= wanted.data() &&
             wanted.data() + wanted.size() <= each->bytes().data() + each->bytes().size();
    };
    const RegistrationRef found = cache_.find(wanted);
    ASSERT_EQ(found != nullptr, std::any_of(owned.begin(), owned.end(), covers));
    ASSERT_TRUE(found == nullptr || covers(found));
  }
  owned.clear();
  EXPECT_GT(device_->live, 0);
}

}  // namespace
}  // namespace gdrx
