// SPDX-License-Identifier: Apache-2.0

#include "Clock.h"

#include <algorithm>

using namespace megalith::sim;

static bool lessKey(const Clock::Extra &extra, uint32_t key) {
  return extra.key < key;
}

Clock::Clock(unsigned ctas) : data(new Data) { data->base.resize(ctas); }

void Clock::own() {
  if (data->references == 1)
    return;
  Data *copy = new Data(*data);
  copy->references = 1;
  release();
  data = copy;
}

bool Clock::coversByExtra(ThreadKey thread, uint32_t time) const {
  for (uint32_t key : {thread.word, thread.wholeWarp().word}) {
    auto at = std::lower_bound(data->extras.begin(), data->extras.end(), key,
                               lessKey);
    if (at != data->extras.end() && at->key == key && time <= at->time)
      return true;
  }
  return false;
}

void Clock::join(const Clock &other) {
  if (!other.data || data == other.data)
    return;
  if (!data) {
    *this = other;
    return;
  }
  own();
  const Data &from = *other.data;
  for (size_t cta = 0; cta < data->base.size(); ++cta)
    data->base[cta] = std::max(data->base[cta], from.base[cta]);
  std::vector<Extra> merged;
  merged.reserve(data->extras.size() + from.extras.size());
  auto a = data->extras.begin(), aEnd = data->extras.end();
  auto b = from.extras.begin(), bEnd = from.extras.end();
  while (a != aEnd || b != bEnd) {
    Extra extra;
    if (b == bEnd || (a != aEnd && a->key < b->key))
      extra = *a++;
    else if (a == aEnd || b->key < a->key)
      extra = *b++;
    else {
      extra = {a->key, std::max(a->time, b->time)};
      ++a, ++b;
    }
    if (extra.time > data->base[ThreadKey(extra.key).cta()])
      merged.push_back(extra);
  }
  data->extras = std::move(merged);
}

void Clock::joinWithin(const Clock &other, unsigned cta) {
  if (!other.data || data == other.data)
    return;
  const Clock keep = other;
  raise(cta, keep.data->base[cta]);
  for (const Extra &extra : keep.data->extras)
    if (ThreadKey(extra.key).cta() == cta)
      addExtra(ThreadKey(extra.key), extra.time);
}

void Clock::addExtra(ThreadKey key, uint32_t time) {
  if (time <= data->base[key.cta()])
    return;
  own();
  auto at = std::lower_bound(data->extras.begin(), data->extras.end(), key.word,
                             lessKey);
  if (at != data->extras.end() && at->key == key.word)
    at->time = std::max(at->time, time);
  else
    data->extras.insert(at, {key.word, time});
}

void Clock::raise(unsigned cta, uint32_t time) {
  if (time <= data->base[cta])
    return;
  own();
  data->base[cta] = time;
  auto &extras = data->extras;
  extras.erase(std::remove_if(extras.begin(), extras.end(),
                              [&](const Extra &extra) {
                                return ThreadKey(extra.key).cta() == cta &&
                                       extra.time <= time;
                              }),
               extras.end());
}

void Clock::dropExtras(unsigned cta) {
  auto at = std::lower_bound(data->extras.begin(), data->extras.end(),
                             ThreadKey(cta, 0, 0).word, lessKey);
  if (at == data->extras.end())
    return;
  size_t kept = size_t(at - data->extras.begin());
  own();
  data->extras.resize(kept);
}
