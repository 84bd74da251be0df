package channel

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// sending is a message that is being sent.
type sending struct {
	*Transport
	message
	to     adapter.Adapter
	id     string // of the delivery
	key    string // what the keys of the chunks begin with
	chunks []string
	report Report
}

// run sends the chunks that were not accepted yet.
func (s *sending) run(ctx context.Context) (topics.Raw, error) {
	for first := s.report.Accepted; s.report.Accepted < len(s.chunks); {
		if s.report.Accepted > first {
			if _, _, ok := s.account(s.origin); !ok {
				return s.failed(&sink.Failure{Reason: ReasonNoChannel, Final: true})
			}
			if end, ok := ctx.Deadline(); ok && time.Until(end) < reserve {
				return s.failed(&sink.Failure{Reason: ReasonContinues})
			}
		}
		sent, f := s.send(ctx)
		if f != nil {
			return s.failed(f)
		}
		s.report = s.report.accept(sent)
		if s.report.Accepted == len(s.chunks) {
			s.report.Status = StatusSent
		}
		s.reports.Add(s.id, s.report)
	}
	s.report.Status = StatusSent
	return s.report.raw(), nil
}

// failed returns the result of an attempt that did not send all chunks.
func (s *sending) failed(f *sink.Failure) (topics.Raw, error) {
	if s.report.Accepted == 0 {
		return nil, f
	}
	return s.report.raw(), f
}

// send sends the next chunk.
func (s *sending) send(ctx context.Context) (adapter.Sent, *sink.Failure) {
	i := s.report.Accepted
	c := adapter.Chunk{
		To: s.origin, Text: s.chunks[i], Format: s.report.Format, Key: s.key + strconv.Itoa(i), Index: i, Count: len(s.chunks),
		Previous: s.report.previous(), SenderName: s.agent,
	}
	if i == len(s.chunks)-1 {
		c.Ask = s.ask
	}
	timeout := s.timeout
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		timeout = min(timeout, max(left-margin, left/2))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sent, err := guarded(ctx, s.to, c)
	return sent, failureOf(err)
}

var errPanic = errors.New("transport: adapter panicked")

// guarded calls an adapter. A panic value may contain the text, so it is not included in the error.
func guarded(ctx context.Context, to adapter.Adapter, c adapter.Chunk) (sent adapter.Sent, err error) {
	defer func() {
		if p := recover(); p != nil {
			sent, err = adapter.Sent{}, errPanic
		}
	}()
	return to.Send(ctx, c)
}

// failureOf returns an adapter's error for the sink. The text of an error that is no *adapter.Failure may contain a secret and is
// dropped.
func failureOf(err error) *sink.Failure {
	var f *adapter.Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return &sink.Failure{Reason: f.Reason, Status: f.Status, Final: f.Final, RetryAfter: f.RetryAfter}
	case errors.Is(err, errPanic):
		return &sink.Failure{Reason: reasonPanic}
	case errors.Is(err, context.DeadlineExceeded):
		return &sink.Failure{Reason: topics.ReasonTimeout}
	case errors.Is(err, context.Canceled):
		return &sink.Failure{Reason: topics.ReasonInterrupted}
	default:
		return &sink.Failure{Reason: reasonOther}
	}
}
