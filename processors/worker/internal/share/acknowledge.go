package share

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sending is a held record in a request.
type sending struct {
	*held
	kind        int8
	acquisition int
}

// acknowledge sends the verdicts and renewals of records, and that the empty offsets have no records.
func (s *session) acknowledge(ctx context.Context, acks []*held) error {
	req := kmsg.NewPtrShareAcknowledgeRequest()
	req.GroupID, req.MemberID, req.ShareSessionEpoch = &s.config.Group, &s.id, s.epoch
	parts := map[partition][]sending{}
	batches := map[partition][]kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch{}
	add := func(p place, kind int8) {
		b := kmsg.NewShareAcknowledgeRequestTopicPartitionAcknowledgementBatch()
		b.FirstOffset, b.LastOffset, b.AcknowledgeTypes = p.offset, p.offset, []int8{kind}
		batches[p.partition] = append(batches[p.partition], b)
	}
	s.mu.Lock()
	for _, h := range acks {
		a := sending{h, h.kind(), h.acquisition}
		parts[h.partition] = append(parts[h.partition], a)
		req.IsRenewAck = req.IsRenewAck || a.kind == renewal
		add(h.place, a.kind)
	}
	s.mu.Unlock()
	if len(acks) == 0 { // a rejected gap must not reject verdicts with it
		for _, p := range s.empty {
			add(p, gap)
		}
		s.empty = nil
	}
	for p, list := range batches {
		slices.SortFunc(list, func(a, b kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch) int {
			return cmp.Compare(a.FirstOffset, b.FirstOffset)
		})
		part := kmsg.NewShareAcknowledgeRequestTopicPartition()
		part.Partition, part.AcknowledgementBatches = p.id, list
		t := kmsg.NewShareAcknowledgeRequestTopic()
		t.TopicID, t.Partitions = p.topic, []kmsg.ShareAcknowledgeRequestTopicPartition{part}
		if i := slices.IndexFunc(req.Topics, func(t kmsg.ShareAcknowledgeRequestTopic) bool { return t.TopicID == p.topic }); i >= 0 {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
		} else {
			req.Topics = append(req.Topics, t)
		}
	}
	sent := time.Now()
	resp, err := req.RequestWith(ctx, s.client.Broker(int(s.broker)))
	if err == nil {
		err = s.answered(resp.ErrorCode, resp.ErrorMessage)
	}
	if err != nil {
		for _, list := range parts {
			s.keep(list, false, sent)
		}
		return err
	}
	lock := time.Duration(resp.AcquisitionLockTimeoutMillis) * time.Millisecond
	if lock <= 0 {
		lock = s.config.Lock
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			at := partition{t.TopicID, p.Partition}
			list := parts[at]
			delete(parts, at)
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				s.rejected(list, err)
			} else {
				s.confirmed(list, sent, lock)
			}
		}
	}
	for at, list := range parts {
		s.keep(list, false, sent)
		return fmt.Errorf("the broker did not answer for partition %d", at.id)
	}
	return nil
}

// retryAfter is how long a record waits whose acknowledgement the broker could not handle.
const retryAfter = 200 * time.Millisecond

// keep leaves records to a later request, not before retry.
func (m *member) keep(list []sending, alone bool, retry time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range list {
		if a.current() {
			a.held.sending, a.alone, a.retry = false, alone, retry
		}
	}
}

// current reports whether the record was not acquired again since the request was sent.
func (a sending) current() bool { return a.acquisition == a.held.acquisition }

// confirmed ends records whose verdict the broker has, and extends the locks of the others.
func (m *member) confirmed(list []sending, sent time.Time, lock time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range list {
		switch {
		case !a.current() || m.held[a.place] != a.held:
		case a.kind == renewal:
			a.held.sending, a.alone = false, false
			a.extend(sent, lock)
		default:
			a.expiry.Stop()
			delete(m.held, a.place)
		}
	}
}

// rejected decides about records whose acknowledgement the broker has rejected. The broker rejects all of a partition if
// one of them is not held any more, so each is then sent alone.
func (s *session) rejected(list []sending, err error) {
	switch {
	case len(list) == 0: // offsets without a record
		return
	case !lostBy(err):
		s.report(fmt.Sprintf("acknowledge %s/%d", list[0].name, list[0].id), err)
		s.keep(list, false, time.Now().Add(retryAfter))
	case len(list) > 1 && !moved(err):
		s.keep(list, true, time.Time{})
	default:
		if moved(err) {
			s.lookAgain()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range list {
			if a.current() && s.held[a.place] == a.held {
				s.lose(a.held, err.Error())
			}
		}
	}
}

// lostBy reports whether the broker's error says that the record is not held by this member any more.
func lostBy(err error) bool {
	return errors.Is(err, kerr.InvalidRecordState) || errors.Is(err, kerr.InvalidRequest) || moved(err) || !kerr.IsRetriable(err)
}

// moved reports whether the error concerns the partition: its leader has changed, which releases its records, or it is gone.
func moved(err error) bool {
	return errors.Is(err, kerr.NotLeaderForPartition) || errors.Is(err, kerr.FencedLeaderEpoch) ||
		errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}
