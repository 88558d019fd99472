#include "python/listening.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace plait {
namespace {

namespace nb = nanobind;
constexpr std::chrono::milliseconds kTurn(20);  // how long a Ctrl-C may wait

// What the working thread has to tell, until the listening thread has time for it. Only the last of
// each kind counts.
struct News {
  std::optional<Seconds> improvement;
  std::optional<double> progress;
  bool done = false;
  bool any() const { return improvement || progress || done; }
};

class Mailbox {
 public:
  void put(const std::function<void(News&)>& change) {
    const std::lock_guard lock(mutex_);
    change(news_);
    arrived_.notify_one();
  }
  News take() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, kTurn, [&] { return news_.any(); });
    return std::exchange(news_, News{});
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  News news_;
};

Session session_of(const Callbacks& callbacks, std::stop_token stop, Mailbox& mailbox) {
  Session session;
  session.stop = std::move(stop);
  if (!callbacks.on_improvement.is_none())
    // An answer may take several searches, each of which begins with a first plan of its own.
    session.on_improvement = [&mailbox, best = std::make_shared<Seconds>(HUGE_VAL)](Seconds step) {
      mailbox.put([&](News& news) {
        if (step < *best) news.improvement = *best = step;
      });
    };
  if (!callbacks.on_progress.is_none())
    session.on_progress = [&mailbox](double fraction) {
      mailbox.put([&](News& news) { news.progress = fraction; });
    };
  return session;
}

// Whether Ctrl-C was pressed. Throws what another signal's handler raised.
bool interrupted() {
  if (PyErr_CheckSignals() == 0) return false;
  if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw nb::python_error();
  PyErr_Clear();
  return true;
}

void tell(const Callbacks& callbacks, const News& news) {
  if (news.improvement) callbacks.on_improvement(news.improvement->value);
  if (news.progress) callbacks.on_progress(*news.progress);
}

News take_unlocked(Mailbox& mailbox) {
  const nb::gil_scoped_release unlocked;
  return mailbox.take();
}

}  // namespace

bool run_listening(const Callbacks& callbacks, const std::function<void(const Session&)>& work) {
  std::stop_source stop;
  Mailbox mailbox;
  std::exception_ptr failure;
  std::exception_ptr raised;  // by a callback
  bool pressed = false;
  const Session session = session_of(callbacks, stop.get_token(), mailbox);
  std::thread worker([&] {
    try {
      work(session);
    } catch (...) {
      failure = std::current_exception();
    }
    mailbox.put([](News& news) { news.done = true; });
  });
  for (bool done = false; !done;) {
    const News news = take_unlocked(mailbox);
    done = news.done;
    if (raised) continue;
    try {
      tell(callbacks, news);
      if (interrupted()) {
        pressed = true;
        stop.request_stop();
      }
    } catch (const nb::python_error& error) {
      // Ctrl-C while a callback ran is Ctrl-C, not a fault of the callback.
      if (error.matches(PyExc_KeyboardInterrupt))
        pressed = true;
      else
        raised = std::current_exception();
      stop.request_stop();
    } catch (...) {
      raised = std::current_exception();
      stop.request_stop();
    }
  }
  worker.join();
  if (raised) std::rethrow_exception(raised);
  if (failure) std::rethrow_exception(failure);
  return pressed;
}

}  // namespace plait
