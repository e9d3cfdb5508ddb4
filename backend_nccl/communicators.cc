#include "backend_nccl/communicators.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "backend_nccl/device.h"
#include "core/base/index.h"

namespace syncline::nccl_backend {
namespace {

using namespace std::chrono_literals;

ncclDataType_t type_of(WireNumber number) {
  switch (number) {
    case WireNumber::kFp32:
      return ncclFloat32;
    case WireNumber::kFp16:
      return ncclFloat16;
    case WireNumber::kBf16:
      return ncclBfloat16;
    case WireNumber::kFp64:
      return ncclFloat64;
    case WireNumber::kByte:
      return ncclUint8;
  }
  return ncclUint8;
}

// Identifies this machine: containers on two machines may share a host name, not a boot id.
std::string machine_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return std::string(name) + " " + boot;
}

// Returns the network interface that has this IPv4 address; empty: none.
std::string interface_of(const std::string& address) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return "";
  std::string name;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, each->ifa_addr, sizeof ipv4);
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof text);
    if (address == text) name = each->ifa_name;
  }
  freeifaddrs(first);
  return name;
}

// Guards the environment, as ranks may be threads of one process: getenv() in one thread may read a
// list that setenv() in another has just freed.
std::mutex variables_mutex;

// Sets an environment variable during its lifetime, unless the user has set it.
class Environs {
 public:
  Environs(const char* name, const std::string& value) : name_(name) {
    const std::lock_guard lock(variables_mutex);
    mine_ = !value.empty() && std::getenv(name) == nullptr;
    if (mine_) setenv(name, value.c_str(), 1);
  }
  ~Environs() {
    const std::lock_guard lock(variables_mutex);
    if (mine_) unsetenv(name_);
  }
  Environs(const Environs&) = delete;
  Environs& operator=(const Environs&) = delete;

 private:
  const char* name_;
  bool mine_ = false;
};

std::string in_seconds(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

WaitLimit::WaitLimit(const live::ControlChannel& channel, std::chrono::milliseconds more)
    : channel_(channel), most_(channel.timeout() + more) {}

void WaitLimit::look(const std::string& waiting_for) const {
  channel_.check();
  if (live::LiveClock::now() - since_ < most_) return;
  throw DeviceError(waiting_for + ": no progress for " + in_seconds(most_) +
                    ": a rank hangs, or its link is cut");
}

DevicePlace choose_device(live::ControlChannel& channel, int wanted) {
  const std::string reason = why_no_nccl();
  if (!reason.empty()) throw DeviceError(reason);
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  DevicePlace here;
  const auto machines = channel.gather(machine_name());
  const auto own = machines.begin() + channel.rank();
  here.device = static_cast<int>(std::count(machines.begin(), own, *own)) % devices;
  if (wanted >= 0) here.device = wanted;
  check_cuda(cudaSetDevice(here.device), "cudaSetDevice(" + std::to_string(here.device) + ")");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, here.device), "cudaGetDeviceProperties");
  here.name = properties.name;

  const std::string id(properties.uuid.bytes, sizeof properties.uuid.bytes);
  const auto ids = channel.gather(id);
  const auto names = channel.gather(here.name);
  std::map<std::string, int> ranks;
  std::map<std::string, std::string> name_of;
  for (std::size_t r = 0; r < ids.size(); ++r) {
    here.ranks_on_device = std::max(here.ranks_on_device, ++ranks[ids[r]]);
    name_of[ids[r]] = names[r];
  }
  std::map<std::string, int> gpus;
  for (const auto& [uuid, name] : name_of) ++gpus[name];
  for (const auto& [name, count] : gpus) {
    here.summary += (here.summary.empty() ? "" : ", ") + std::to_string(count) + " x " + name;
  }
  return here;
}

void set_environment(const live::ControlChannel& channel, bool shared) {
  const std::string interface = shared ? interface_of(channel.own_address()) : "";
  const std::lock_guard lock(variables_mutex);
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  if (!shared) return;
  const std::pair<const char*, std::string> variables[] = {
      {"NCCL_HOSTID", "rank" + std::to_string(channel.rank())},
      {"NCCL_NET", "Socket"},
      {"NCCL_IB_DISABLE", "1"},
      {"NCCL_MNNVL_ENABLE", "0"},
      // Exactly this interface, not every one with this prefix.
      {"NCCL_SOCKET_IFNAME", interface.empty() ? "" : "=" + interface}};
  for (const auto& [name, value] : variables) {
    if (!value.empty()) setenv(name, value.c_str(), 0);
  }
}

Communicators::Communicators(live::ControlChannel& channel, const NcclSettings& settings,
                             bool shared_device)
    : channel_(channel), settings_(settings), max_ctas_(settings.max_ctas) {
  if (max_ctas_ == 0 && shared_device) max_ctas_ = NcclSettings::kSharedCtas;
  if (channel.ranks() == 1) return;
  ncclUniqueId id{};
  if (channel.rank() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  const std::string text = channel.from_first(std::string(id.internal, sizeof id.internal));
  if (text.size() != sizeof id.internal) channel.broken_by(0, "it gave half an id for NCCL");
  std::memcpy(id.internal, text.data(), sizeof id.internal);
  try {
    ncclConfig_t how = config();
    const std::string call = "ncclCommInitRankConfig";
    check_nccl(ncclCommInitRankConfig(&world_, channel.ranks(), id, channel.rank(), &how), call);
    settle(world_, call);
  } catch (...) {
    abort();
    throw;
  }
}

Communicators::~Communicators() {
  if (!aborted_) leave();
}

ncclConfig_t Communicators::config() const {
  ncclConfig_t how = NCCL_CONFIG_INITIALIZER;
  how.blocking = settings_.graph ? 1 : 0;
  if (max_ctas_ > 0) {
    how.minCTAs = 1;
    how.maxCTAs = max_ctas_;
  }
  return how;
}

// Waits until the communicator reports success: a non-blocking call returns earlier than that.
void Communicators::settle(ncclComm_t communicator, const std::string& call) const {
  const WaitLimit wait_limit(channel_);
  for (int looks = 0;; ++looks) {
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(communicator, &state), "ncclCommGetAsyncError", communicator);
    check_nccl(state, call, communicator);
    if (state == ncclSuccess) return;
    // Takes microseconds, or else another rank has not arrived yet.
    constexpr int kShort = 200;
    if (looks < kShort) {
      std::this_thread::yield();
    } else {
      wait_limit.look(call);
      std::this_thread::sleep_for(looks < 2 * kShort ? 20us : 500us);
    }
  }
}

ncclComm_t Communicators::split(const CommunicatorKey& key) {
  // NCCL reads its choice of algorithms when a communicator is made.
  const bool asked = settings_.follow_algorithm && !key.algorithm.empty();
  const Environs environs("NCCL_ALGO", asked ? "allreduce:" + key.algorithm : "");
  const auto here = collective::find_place(key.groups, channel_.rank());
  const int color = here ? here->group : NCCL_SPLIT_NOCOLOR;
  const std::string call = "ncclCommSplit(stream " + std::to_string(key.stream) + ", groups of " +
                           std::to_string(key.groups.size) + ")";
  ncclConfig_t how = config();
  ncclComm_t child = nullptr;
  check_nccl(ncclCommSplit(world_, color, here ? here->member : -1, &child, &how), call, world_);
  // The parent first: until it has settled, the child's address may be unset.
  settle(world_, call);
  if (child != nullptr) settle(child, call);
  return child;
}

void Communicators::prepare(const std::vector<CommunicatorKey>& keys) {
  in_use_.clear();
  for (const auto& key : keys) {
    const auto found =
        std::find_if(made_.begin(), made_.end(), [&](const Made& made) { return made.key == key; });
    in_use_.push_back(static_cast<std::size_t>(found - made_.begin()));
    if (found == made_.end()) made_.push_back({key, split(key)});
  }
}

void Communicators::exchange(int used, const std::vector<CollectiveCall>& calls, std::byte* block,
                             cudaStream_t stream) {
  if (calls.empty()) return;
  ncclComm_t communicator = made_[in_use_[index(used)]].communicator;
  assert(communicator != nullptr && "a rank outside of the groups has no calls");
  if (calls.size() > 1) check_nccl(ncclGroupStart(), "ncclGroupStart", communicator);
  std::string name;
  for (const auto& call : calls) {
    const void* send = block + call.send;
    void* receive = block + call.receive;
    const auto count = static_cast<std::size_t>(call.count);
    const ncclDataType_t type = type_of(call.number);
    ncclResult_t result = ncclSuccess;
    if (call.form != CollectiveCall::Form::kCollective) {
      const bool sends = call.form == CollectiveCall::Form::kSend;
      name = sends ? "ncclSend" : "ncclRecv";
      result = sends ? ncclSend(send, count, type, call.root, communicator, stream)
                     : ncclRecv(receive, count, type, call.root, communicator, stream);
      check_nccl(result, name, communicator);
      continue;
    }
    switch (call.kind) {
      case collective::CollectiveKind::kAllReduce:
        name = "ncclAllReduce";
        result = ncclAllReduce(send, receive, count, type, ncclSum, communicator, stream);
        break;
      case collective::CollectiveKind::kReduceScatter:
        name = "ncclReduceScatter";
        result = ncclReduceScatter(send, receive, count, type, ncclSum, communicator, stream);
        break;
      case collective::CollectiveKind::kAllGather:
        name = "ncclAllGather";
        result = ncclAllGather(send, receive, count, type, communicator, stream);
        break;
      case collective::CollectiveKind::kReduce:
        name = "ncclReduce";
        result = ncclReduce(send, receive, count, type, ncclSum, call.root, communicator, stream);
        break;
      case collective::CollectiveKind::kBroadcast:
        name = "ncclBroadcast";
        result = ncclBroadcast(send, receive, count, type, call.root, communicator, stream);
        break;
    }
    check_nccl(result, name, communicator);
  }
  if (calls.size() > 1) check_nccl(ncclGroupEnd(), "ncclGroupEnd", communicator);
  settle(communicator, name);
}

void Communicators::check() const {
  for (const auto& made : made_) {
    if (made.communicator == nullptr) continue;
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(made.communicator, &state), "ncclCommGetAsyncError",
               made.communicator);
    check_nccl(state, "NCCL's communicator of stream " + std::to_string(made.key.stream),
               made.communicator);
  }
}

void Communicators::abort() noexcept {
  if (aborted_) return;
  aborted_ = true;
  for (auto& made : made_) {
    if (made.communicator != nullptr) ncclCommAbort(made.communicator);
    made.communicator = nullptr;
  }
  if (world_ != nullptr) ncclCommAbort(world_);
  world_ = nullptr;
}

// Finalizes in order: all collectives are done, and each rank may take its own time. Aborts those
// that other ranks do not finish in 5 s.
void Communicators::leave() noexcept {
  const auto deadline = live::LiveClock::now() + 5s;
  const auto end = [&](ncclComm_t communicator) {
    if (communicator == nullptr) return;
    ncclResult_t state = ncclCommFinalize(communicator);
    while (state == ncclInProgress && live::LiveClock::now() < deadline) {
      std::this_thread::sleep_for(500us);
      if (ncclCommGetAsyncError(communicator, &state) != ncclSuccess) break;
    }
    state == ncclSuccess ? ncclCommDestroy(communicator) : ncclCommAbort(communicator);
  };
  for (auto& made : made_) end(made.communicator);
  end(world_);
  made_.clear();
  world_ = nullptr;
}

}  // namespace syncline::nccl_backend
