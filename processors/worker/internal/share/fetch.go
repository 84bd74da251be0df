package share

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// fetch acquires at most as many records as slots, which are reserved, and starts their handlers.
func (s *session) fetch(ctx context.Context, slots int, wait time.Duration) error {
	req := kmsg.NewPtrShareFetchRequest()
	req.MaxRecords, req.BatchSize = int32(slots), int32(slots)
	names := s.subscribe(req)
	resp, sent, err := s.ask(ctx, req, wait)
	if err != nil {
		s.giveBackSlots(slots)
		return err
	}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			s.sent[partition{t.TopicID, p.Partition}] = true
		}
	}
	for _, t := range req.ForgottenTopicsData {
		for _, p := range t.Partitions {
			delete(s.sent, partition{t.TopicID, p})
		}
	}
	lock := time.Duration(resp.AcquisitionLockTimeoutMillis) * time.Millisecond
	if lock <= 0 {
		lock = s.config.Lock
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			at := partition{t.TopicID, p.Partition}
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				s.report(fmt.Sprintf("fetch %s/%d", names[at], p.Partition), err)
				s.lookAgain()
				continue
			}
			slots -= s.acquire(at, names[at], p, slots, sent, lock)
		}
	}
	s.giveBackSlots(slots)
	return nil
}

// subscribe adds to a fetch how the wanted partitions differ from those of the broker's session. It returns the topic names
// of all of them.
func (s *session) subscribe(req *kmsg.ShareFetchRequest) map[partition]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[partition]string, len(s.want))
	index := map[[16]byte]int{}
	for p, name := range s.want {
		names[p] = name
		if s.sent[p] {
			continue
		}
		i, ok := index[p.topic]
		if !ok {
			i = len(req.Topics)
			index[p.topic] = i
			t := kmsg.NewShareFetchRequestTopic()
			t.TopicID = p.topic
			req.Topics = append(req.Topics, t)
		}
		part := kmsg.NewShareFetchRequestTopicPartition()
		part.Partition, part.PartitionMaxBytes = p.id, maxBytes
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
	}
	for p := range s.sent {
		if _, ok := s.want[p]; !ok {
			f := kmsg.NewShareFetchRequestForgottenTopicsData()
			f.TopicID, f.Partitions = p.topic, []int32{p.id}
			req.ForgottenTopicsData = append(req.ForgottenTopicsData, f)
		}
	}
	return names
}

// acquire takes over the acquired records of a partition and returns how many of the slots they use.
func (s *session) acquire(
	at partition, name string, in *kmsg.ShareFetchResponseTopicPartition, slots int, sent time.Time, lock time.Duration,
) (used int) {
	records, empty, err := decode(name, in)
	if err != nil {
		// The records may be readable in another response: their locks expire and the broker delivers them again.
		s.report(fmt.Sprintf("decode records of %s/%d", name, at.id), err)
	} else {
		for _, offset := range empty {
			s.empty = append(s.empty, place{at, offset})
		}
	}
	for _, r := range records {
		if s.start(place{at, r.record.Offset}, r, used < slots, sent, lock) {
			used++
		}
	}
	return used
}

// start begins to handle a record and reports whether it uses a slot. A record without a slot is released. One whose lock
// has expired is ignored.
func (s *session) start(at place, r acquired, slot bool, sent time.Time, lock time.Duration) (used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[at]; h != nil {
		// The broker delivers a record that this process still handles, for example after a restart of the broker. The call
		// that is running continues under the new lock.
		h.session, h.acquisition, h.sending = s, h.acquisition+1, false
		h.extend(sent, lock)
		return false
	}
	if time.Since(sent) >= lock { // the process was suspended, and the broker delivers the record to others
		return false
	}
	ctx, lost := context.WithCancelCause(context.Background())
	h := &held{place: at, name: r.record.Topic, session: s, cancel: lost}
	h.expiry = time.AfterFunc(time.Until(sent.Add(lock)), func() { s.expire(h) })
	h.extend(sent, lock)
	s.held[at] = h
	if !slot || s.stopping {
		h.done = true
		return false
	}
	d := source.Delivery{
		Record: r.record, Count: r.count, Remaining: max(s.limit-r.count, 0), Attempts: r.count - 1, Repeated: r.count > 1,
		Confirm: func(context.Context) { s.expire(h) },
		Wait:    func(waiting bool) { s.wait(h, waiting) },
	}
	s.handlers.Go(func() { s.finish(h, s.handle(ctx, d)) })
	return true
}

// finish records the verdict of a record's handler and frees its slot.
func (m *member) finish(h *held, v source.Verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.cancel(nil)
	h.done, h.verdict = true, v
	m.space++
	if !h.waiting {
		m.free++
	}
	m.wakeAll()
}

// wait frees the slot of a record that waits, or takes a slot for it again.
func (m *member) wait(h *held, waiting bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.done || h.waiting == waiting {
		return
	}
	h.waiting = waiting
	if !waiting {
		m.free--
		return
	}
	m.free++
	m.wakeAll()
}

// expire ends the handler of a record if its lock was not renewed in time.
func (m *member) expire(h *held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[h.place] == h && !h.done && !time.Now().Before(h.deadline) {
		m.lose(h, "its lock expired")
	}
}

// lose gives up a record. m.mu is held.
func (m *member) lose(h *held, why string) {
	h.expiry.Stop()
	delete(m.held, h.place)
	m.wakeAll()
	if h.done && h.verdict == source.Released {
		return
	}
	m.logger.Warn("worker lost a record, which the broker delivers again", zap.String("topic", h.name),
		zap.Int32("partition", h.id), zap.Int64("offset", h.offset), zap.Bool("running", !h.done), zap.String("reason", why))
	h.cancel(fmt.Errorf("%w: %s/%d offset %d: %s", source.ErrLost, h.name, h.id, h.offset, why))
}
