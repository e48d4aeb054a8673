// NCCL between simulated GPUs: its ranks are communicators of this process, whichever threads made them.
//
// Modelled: that a communicator is made, and perhaps destroyed, when all ranks have come; that a GPU holds one rank;
// collectives and sends that wait for their peers on the device; groups; abort, after which the kernels of the other
// ranks wait until these abort too; one NCCL kernel at a time if asked.
// Not modelled: protocols, buffers and topology (a send is over when it has been received), asynchronous errors,
// splits, registered memory, several processes.
#include "nccl.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>

#include "model.h"

using namespace model;

struct Call {
  std::string kind;
  const void* send;
  void* recv;
  size_t number;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
};
struct Meeting {  // one collective
  std::vector<Call> calls;
  std::vector<bool> here;
  bool over = false;
};
struct Message {
  const void* data;
  size_t bytes;
  bool taken = false;
};
struct Clique {  // the communicators of all ranks
  int size = 0;
  std::vector<ncclComm*> ranks;
  std::map<uint64_t, std::shared_ptr<Meeting>> meetings;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> channels;  // by sender and receiver
  int destroying = 0;
};
struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank, device;
  uint64_t calls = 0, outstanding = 0;
  bool aborted = false, gone = false;
};
struct Part {
  bool sends;
  int peer;
  void* buffer;
  size_t bytes;
};
struct Posted {
  ncclComm* comm;
  Stream* stream;
  bool is_message;
  Call call;
  Part part;
};

static auto& cliques = *new std::map<std::string, std::shared_ptr<Clique>>;
static thread_local int depth = 0;
static thread_local std::vector<Posted> grouped;
static uint64_t launches = 0;

static std::string named(const ncclComm* comm, const std::string& what) {
  std::ostringstream text;
  text << "nccl " << what << " of rank " << comm->rank << " of " << comm->clique->size;
  return text.str();
}

// A communicator that was aborted or destroyed is gone: NCCL would read memory that it has freed.
static bool is_gone(const ncclComm* comm, const char* what) {
  if (comm && comm->gone) report(std::string("GONE: ") + named(comm, what) + ", which was aborted or destroyed");
  return !comm || comm->gone;
}

// ---- collectives

static bool agree(const Meeting& meeting) {
  const Call& first = meeting.calls[0];
  for (size_t rank = 1; rank < meeting.calls.size(); rank++) {
    const Call& other = meeting.calls[rank];
    if (other.kind == first.kind && other.number == first.number && other.type == first.type && other.op == first.op &&
        other.root == first.root)
      continue;
    std::ostringstream text;
    text << "NCCL MISMATCH: rank 0 " << first.kind << " of " << first.number << ", type " << first.type << "; rank " << rank
         << " " << other.kind << " of " << other.number << ", type " << other.type;
    report(text.str());
    return false;
  }
  return true;
}

using Bytes = std::vector<char>;

static std::vector<const char*> parts_for(const std::vector<const char*>& from, size_t rank, size_t bytes) {
  std::vector<const char*> parts;
  for (auto given : from) parts.push_back(given + rank * bytes);
  return parts;
}

static Bytes joined(const std::vector<const char*>& parts, size_t bytes) {
  Bytes whole;
  for (auto part : parts) whole.insert(whole.end(), part, part + bytes);
  return whole;
}

static Bytes reduced(const std::vector<const char*>& from, const Call& call) {
  Bytes sum(call.number * width_of(call.type));
  reduce(sum.data(), from, call.number, call.type, call.op);
  return sum;
}

// What this rank gets; nothing where it is not the root.
static Bytes result(const Call& call, const std::vector<const char*>& from, int rank) {
  size_t bytes = call.number * width_of(call.type);
  if (call.kind == "AllReduce" || (call.kind == "Reduce" && rank == call.root)) return reduced(from, call);
  if (call.kind == "Broadcast") return Bytes(from[call.root], from[call.root] + bytes);
  if (call.kind == "AllGather") return joined(from, bytes);
  if (call.kind == "ReduceScatter") return reduced(parts_for(from, rank, bytes), call);
  if (call.kind == "AlltoAll") return joined(parts_for(from, rank, bytes), bytes);
  return {};
}

static void carry_out(Meeting& meeting) {
  if (!agree(meeting)) return;
  std::vector<const char*> from;
  for (auto& call : meeting.calls) from.push_back((const char*)call.send);
  std::vector<Bytes> results;  // all of them before the first is written: results may overlap inputs
  for (size_t rank = 0; rank < meeting.calls.size(); rank++) results.push_back(result(meeting.calls[rank], from, (int)rank));
  for (size_t rank = 0; rank < results.size(); rank++)
    if (!results[rank].empty()) memcpy(meeting.calls[rank].recv, results[rank].data(), results[rank].size());
}

static std::vector<Range> touched(const Call& call, const ncclComm* comm) {
  size_t own = call.number * width_of(call.type), all = own * comm->clique->size;
  bool gives_all = call.kind == "ReduceScatter" || call.kind == "AlltoAll";
  bool gets_all = call.kind == "AllGather" || call.kind == "AlltoAll";
  bool is_root = comm->rank == call.root;
  std::vector<Range> ranges;
  if (call.kind != "Broadcast" || is_root) ranges.push_back({(uint64_t)call.send, (uint64_t)call.send + (gives_all ? all : own), false});
  if (call.kind != "Reduce" || is_root) ranges.push_back({(uint64_t)call.recv, (uint64_t)call.recv + (gets_all ? all : own), true});
  return ranges;
}

// A kernel that holds its device's turn where one NCCL kernel runs at a time, in the order of the launches.
static void launch(Operation& operation, ncclComm* comm, Stream* stream) {
  operation.nccl = ++launches;
  nccl_kernels[stream->device].push_back(operation.nccl);
  comm->outstanding++;
}

static bool has_its_turn(const Stream* stream, uint64_t number) {
  auto& kernels = nccl_kernels[stream->device];
  return !setting("one_nccl_kernel") || kernels.empty() || kernels.front() == number;
}

static std::shared_ptr<Operation> collective(ncclComm* comm, Stream* stream, const Call& call) {
  auto operation = std::make_shared<Operation>();
  Clique* clique = comm->clique.get();
  uint64_t number = comm->calls++;
  auto& kept = clique->meetings[number];
  if (!kept) kept = std::make_shared<Meeting>();
  kept->calls.resize(clique->size);
  kept->here.resize(clique->size);
  auto meeting = kept;
  meeting->calls[comm->rank] = call;
  operation->label = named(comm, call.kind);
  operation->ranges = touched(call, comm);
  launch(*operation, comm, stream);
  uint64_t turn = operation->nccl;
  operation->ready = [=] {
    if (comm->aborted || meeting->over) return true;
    if (!has_its_turn(stream, turn)) return false;
    meeting->here[comm->rank] = true;
    for (int rank = 0; rank < clique->size; rank++)
      if (!meeting->here[rank] || clique->ranks[rank]->aborted) return false;  // of who aborts nothing more comes
    return true;
  };
  operation->run = [=] {
    LOCKED;
    if (!comm->aborted && !meeting->over) {
      meeting->over = true;
      carry_out(*meeting);
      clique->meetings.erase(number);
    }
    comm->outstanding--;
  };
  return operation;
}

// ---- sends and receives, those of a group as one kernel

struct Progress {
  bool begun = false;
  std::vector<std::shared_ptr<Message>> sent;
  std::vector<bool> got;
};

static void begin(Progress& progress, ncclComm* comm, const std::vector<Part>& parts) {
  if (progress.begun) return;
  progress.begun = true;
  for (auto& part : parts) {
    if (!part.sends) continue;
    progress.sent.push_back(std::make_shared<Message>(Message{part.buffer, part.bytes}));
    comm->clique->channels[{comm->rank, part.peer}].push_back(progress.sent.back());
  }
}

static bool receive(Progress& progress, ncclComm* comm, const std::vector<Part>& parts, size_t number) {
  const Part& part = parts[number];
  for (size_t i = 0; i < number; i++)
    if (!parts[i].sends && !progress.got[i] && parts[i].peer == part.peer) return false;  // in order
  auto& channel = comm->clique->channels[{part.peer, comm->rank}];
  if (channel.empty() || comm->clique->ranks[part.peer]->aborted) return false;
  auto message = channel.front();
  channel.pop_front();
  if (message->bytes != part.bytes)
    report("NCCL MISMATCH: " + std::to_string(message->bytes) + " bytes were sent, " + std::to_string(part.bytes) + " awaited");
  memcpy(part.buffer, message->data, std::min(message->bytes, part.bytes));
  return message->taken = progress.got[number] = true;
}

static std::shared_ptr<Operation> messages(ncclComm* comm, Stream* stream, const std::vector<Part>& parts) {
  auto operation = std::make_shared<Operation>();
  operation->label = named(comm, std::to_string(parts.size()) + " sends and receives");
  for (auto& part : parts) operation->ranges.push_back({(uint64_t)part.buffer, (uint64_t)part.buffer + part.bytes, !part.sends});
  launch(*operation, comm, stream);
  uint64_t turn = operation->nccl;
  auto progress = std::make_shared<Progress>();
  progress->got.resize(parts.size());
  operation->ready = [=] {
    if (comm->aborted) return true;
    if (!has_its_turn(stream, turn)) return false;
    begin(*progress, comm, parts);
    bool all = true;
    for (size_t i = 0; i < parts.size(); i++)
      if (!parts[i].sends && !progress->got[i] && !receive(*progress, comm, parts, i)) all = false;
    for (auto& message : progress->sent) all = all && message->taken;
    return all;
  };
  operation->run = [=] {
    LOCKED;
    comm->outstanding--;
  };
  return operation;
}

// ---- posts, one by one or as a group

static ncclResult_t post_all() {
  std::vector<Posted> all;
  all.swap(grouped);
  LOCKED;
  std::set<ncclComm*> comms;
  std::vector<std::pair<ncclComm*, Stream*>> order;
  std::map<std::pair<ncclComm*, Stream*>, std::vector<Part>> parts;
  for (auto& posted : all) {
    if (is_gone(posted.comm, "a call")) return ncclInvalidArgument;
    if (comms.insert(posted.comm).second) count("launches");
    auto place = std::make_pair(posted.comm, posted.stream);
    if (!posted.is_message) {
      post(posted.stream, [=] { return collective(posted.comm, posted.stream, posted.call); });
    } else {
      if (!parts.count(place)) order.push_back(place);
      parts[place].push_back(posted.part);
    }
  }
  for (auto& place : order) {
    auto [comm, stream] = place;
    auto own = parts[place];
    post(stream, [comm = comm, stream = stream, own] { return messages(comm, stream, own); });
  }
  return ncclSuccess;
}

static ncclResult_t add(ncclComm_t comm, cudaStream_t handle, bool is_message, const Call& call, const Part& part) {
  {
    LOCKED;
    grouped.push_back({comm, stream_of(handle), is_message, call, part});
  }
  return depth ? ncclSuccess : post_all();
}
static ncclResult_t collect(ncclComm_t comm, cudaStream_t stream, const Call& call) { return add(comm, stream, false, call, {}); }

// ---- communicators

static ncclResult_t enter(ncclComm_t* made, const std::string& id, int size, int rank) {
  LOCKED;
  count("communicators");
  auto& kept = cliques[id];
  if (!kept) kept = std::make_shared<Clique>();
  auto clique = kept;
  clique->size = size;
  clique->ranks.resize(size);
  for (auto* other : clique->ranks)
    if (other && other->device == current_device) {
      report("DUPLICATE GPU: two ranks on device " + std::to_string(current_device));
      return ncclInvalidUsage;
    }
  clique->ranks[rank] = *made = new ncclComm{clique, rank, current_device};
  changed.notify_all();
  auto over = [&] {
    for (auto* other : clique->ranks)
      if (!other) return false;
    return !setting("init_held");
  };
  return waits(held, over, named(*made, "ncclCommInitRank")) ? ncclSuccess : ncclSystemError;
}

static ncclResult_t destroy(ncclComm_t comm) {
  LOCKED;
  if (is_gone(comm, "ncclCommDestroy")) return ncclSuccess;
  bool over = waits(held, [&] { return comm->outstanding == 0 || comm->aborted; }, named(comm, "ncclCommDestroy"));
  if (over && setting("destroy_meets")) {
    Clique* clique = comm->clique.get();
    clique->destroying++;
    changed.notify_all();
    over = waits(held, [&] { return clique->destroying >= clique->size; }, named(comm, "ncclCommDestroy, which meets,"));
  }
  comm->gone = true;  // an abort may break this off
  return over ? ncclSuccess : ncclSystemError;
}

extern "C" {
ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> number{0};
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "model-%d", number++);
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "simulated NCCL error"; }
const char* ncclGetLastError(ncclComm_t) { return "simulated"; }
ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId id, int rank, ncclConfig*) {
  return enter(made, id.internal, size, rank);
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t* made, int size, int rank, int, ncclUniqueId* ids, ncclConfig*) {
  return enter(made, ids[0].internal, size, rank);
}
ncclResult_t ncclCommInitRank(ncclComm_t* made, int size, ncclUniqueId id, int rank) { return enter(made, id.internal, size, rank); }
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return destroy(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  LOCKED;
  if (is_gone(comm, "ncclCommAbort")) return ncclSuccess;
  count("aborts");
  comm->aborted = comm->gone = true;
  comm->clique->destroying++;
  changed.notify_all();
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  LOCKED;
  *error = ncclSuccess;
  return is_gone(comm, "ncclCommGetAsyncError") ? ncclInvalidArgument : ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* size) {
  *size = comm->clique->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(const ncclComm_t, void*, size_t, void** handle) {
  *handle = nullptr;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void*) { return ncclSuccess; }
ncclResult_t ncclMemAlloc(void** made, size_t bytes) {
  LOCKED;
  *made = allocate(bytes, current_device);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void*) { return ncclSuccess; }
ncclResult_t ncclGroupStart() {
  depth++;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return --depth ? ncclSuccess : post_all(); }
ncclResult_t ncclAllReduce(const void* send, void* recv, size_t number, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {"AllReduce", send, recv, number, type, op, 0});
}
ncclResult_t ncclReduce(const void* send, void* recv, size_t number, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {"Reduce", send, recv, number, type, op, root});
}
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t number, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {"Broadcast", send, recv, number, type, ncclSum, root});
}
ncclResult_t ncclBcast(void* buffer, size_t number, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {"Broadcast", buffer, buffer, number, type, ncclSum, root});
}
ncclResult_t ncclAllGather(const void* send, void* recv, size_t number, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {"AllGather", send, recv, number, type, ncclSum, 0});
}
ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t number, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {"ReduceScatter", send, recv, number, type, op, 0});
}
ncclResult_t ncclAlltoAll(const void* send, void* recv, size_t number, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {"AlltoAll", send, recv, number, type, ncclSum, 0});
}
ncclResult_t ncclSend(const void* buffer, size_t number, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, true, {}, {true, peer, (void*)buffer, number * width_of(type)});
}
ncclResult_t ncclRecv(void* buffer, size_t number, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, true, {}, {false, peer, buffer, number * width_of(type)});
}
}
