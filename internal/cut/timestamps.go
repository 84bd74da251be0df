package cut

import "time"

// maxAhead is how far the timestamp of a record may be ahead of the clock for the records that it causes to follow it. The
// clocks of two hosts differ by less. A foreign producer can set any timestamp, and must not move those of others.
const maxAhead = time.Second

// timestamps are those of the records that one callback sends. A reader of several topics that sorts by timestamp must see
// a cause before its effect: the timestamps never decrease in the order in which the callback sends, and grow by 1 ms where
// the topic changes. Within a topic the offsets tell the order.
type timestamps struct {
	topic string // of the record before
	ms    int64  // of the record before, since the epoch; 0: there is none
}

// first returns the timestamp of the first record: now, or that of the record which caused the callback if it is later, but
// not by more than maxAhead. cause is the zero time for a callback that no record caused.
func (t *timestamps) first(topic string, now time.Time, causeTopic string, cause time.Time) time.Time {
	t.topic, t.ms = topic, now.UnixMilli()
	if !cause.IsZero() && cause.Sub(now) <= maxAhead {
		t.ms = max(t.ms, after(cause.UnixMilli(), topic != causeTopic))
	}
	return time.UnixMilli(t.ms)
}

// next returns the timestamp of a record after the first.
func (t *timestamps) next(topic string) time.Time {
	t.ms = after(t.ms, topic != t.topic)
	t.topic = topic
	return time.UnixMilli(t.ms)
}

// after returns the least timestamp of a record that follows one with the timestamp ms.
func after(ms int64, otherTopic bool) int64 {
	if otherTopic {
		return ms + 1
	}
	return ms
}
