package host

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// maxWaiting is how many bytes may wait for the brokers for each row. Then the agent's output is not read.
	maxWaiting = 4 << 20
	// perRecord is what a record takes beside its body.
	perRecord = 200
	// batchBytes is the size from which updates are written at once.
	batchBytes = 64 << 10
)

// outbox writes the host's records: those of each row in order, each after the one before is acknowledged, and until it is.
type outbox struct {
	to        processors.Publisher
	topics    topics.Catalog
	from      string // "host/" and the name
	batchTime time.Duration
	logger    *zap.Logger
	ctx       context.Context // ends when nothing is written any more
	hurried   chan struct{}   // closed when the host begins to end: agents have no shares any more
	running   sync.WaitGroup

	mu     sync.Mutex
	number int64 // of the last record
	boxes  map[string]*box
	shares map[string]*share // by subject, of agents that have written updates
}

// box has the records that wait for one row.
type box struct {
	subject string
	queue   []item
	size    int
	moved   chan struct{} // closed and replaced when the queue changes
}

// item is a record, or an update that is written with others in one record.
type item struct {
	body   crewbody.Body
	update *update
	size   int
	at     time.Time
	// lost is called if the record can never be written. If it is nil, a smaller record is written.
	lost func()
}

// update is a session/update.
type update struct {
	run, session string
	replay       bool
	raw          topics.Raw
}

// put queues a record. While too much waits, it blocks until ctx ends.
func (o *outbox) put(ctx context.Context, subject string, it item) error {
	it.at = time.Now()
	it.size += perRecord
	o.mu.Lock()
	for {
		b := o.boxes[subject]
		if b == nil || b.size+it.size <= maxWaiting {
			break
		}
		moved := b.moved
		o.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-o.ctx.Done():
			return o.ctx.Err()
		}
		o.mu.Lock()
	}
	defer o.mu.Unlock()
	if err := o.ctx.Err(); err != nil {
		return err
	}
	b := o.boxes[subject]
	if b == nil {
		b = &box{subject: subject, moved: make(chan struct{})}
		o.boxes[subject] = b
		o.running.Go(func() { o.drain(b) })
	}
	b.queue, b.size = append(b.queue, it), b.size+it.size
	b.move()
	return nil
}

func (b *box) move() {
	close(b.moved)
	b.moved = make(chan struct{})
}

// idle reports whether nothing waits for a row.
func (o *outbox) idle(subject string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.boxes[subject] == nil
}

// flush waits until everything is written, or ctx ends.
func (o *outbox) flush(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		o.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// drain writes the records of a row until none is left.
func (o *outbox) drain(b *box) {
	for {
		n, next := o.take(b)
		if n == 0 {
			return
		}
		if _, ok := next.body.(crewbody.Updates); ok {
			o.admit(b.subject, next.size)
		}
		o.write(b.subject, next)
		o.mu.Lock()
		for _, it := range b.queue[:n] {
			b.size -= it.size
		}
		clear(b.queue[:n])
		b.queue = b.queue[n:]
		b.move()
		o.mu.Unlock()
	}
}

// take returns the next record, which stands for the first n items. Updates wait a little for further ones. n is 0, and the box
// is gone, if it is empty or nothing is written any more.
func (o *outbox) take(b *box) (n int, next item) {
	o.mu.Lock()
	for {
		if len(b.queue) == 0 || o.ctx.Err() != nil {
			delete(o.boxes, b.subject)
			b.move()
			o.mu.Unlock()
			return 0, item{}
		}
		first := b.queue[0]
		if first.update == nil {
			o.mu.Unlock()
			return 1, first
		}
		n, full := b.batch()
		wait := time.Until(first.at.Add(o.batchTime))
		if full || wait <= 0 {
			next := item{body: updates(b.queue[:n])}
			for _, it := range b.queue[:n] {
				next.size += it.size
			}
			o.mu.Unlock()
			return n, next
		}
		moved := b.moved
		o.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-moved:
		case <-o.ctx.Done():
		}
		timer.Stop()
		o.mu.Lock()
	}
}

// batch returns how many items at the front are one record, and whether no further one can be part of it.
func (b *box) batch() (n int, full bool) {
	size, first := 0, b.queue[0].update
	for _, it := range b.queue {
		u := it.update
		joins := u != nil && u.run == first.run && u.session == first.session && u.replay == first.replay
		if n > 0 && (!joins || size+it.size > batchBytes) {
			return n, true
		}
		n, size = n+1, size+it.size
	}
	return n, size >= batchBytes
}

func updates(items []item) crewbody.Body {
	first := items[0].update
	u := crewbody.Updates{
		Run: first.run, SessionID: first.session, Replay: first.replay, SentMS: items[0].at.UnixMilli(),
		Updates: make([]topics.Raw, 0, len(items)),
	}
	for _, it := range items {
		u.Updates = append(u.Updates, it.update.raw)
	}
	return u
}

// write writes a record under the next number, again and again until it is acknowledged. Only what can never be written is
// dropped.
func (o *outbox) write(subject string, it item) {
	o.mu.Lock()
	o.number++
	n := o.number
	o.mu.Unlock()
	id := o.from + ">" + subject + "/" + strconv.FormatInt(n, 10)
	bodies := []crewbody.Body{it.body}
	if it.lost == nil {
		bodies = append(bodies, smaller(it.body))
	}
	for _, body := range bodies {
		r, err := processors.OutboundOf(mailbox.Inputs(o.topics, subject), mailbox.ID(subject), topics.CrewInput{
			InputID: id, Kind: body.Kind(), From: o.from, Number: n, Body: crewbody.Encode(body),
		}, id)
		if err == nil {
			warning := retry.NewWarning(o.logger, nil, "host cannot write a record, retrying", "host has written the record")
			err = retry.Until(o.ctx, func() error { return o.to.Publish(o.ctx, r) }, func(err error) {
				warning.Failed(err, zap.String("subject", subject))
			}, processors.ErrTooLarge, processors.ErrPublisherClosed)
			if err == nil {
				warning.Over(zap.String("subject", subject))
			}
		}
		if err == nil {
			o.sent(subject, n, item{body: body, size: it.size})
		}
		if err == nil || o.ctx.Err() != nil {
			return
		}
		o.logger.Error("host cannot write a record", zap.String("subject", subject), zap.String("kind", body.Kind()),
			zap.Error(err))
		if errors.Is(err, processors.ErrPublisherClosed) {
			return
		}
	}
	if it.lost != nil {
		it.lost()
	}
}

// smaller is what is written instead of a record that is too large or cannot be encoded.
func smaller(body crewbody.Body) crewbody.Body {
	switch b := body.(type) {
	case crewbody.Updates:
		return crewbody.Problem{Run: b.Run, Message: "updates of the session were too large and are lost"}
	case crewbody.TurnEnded:
		b.Usage = nil
		return b
	case crewbody.Started:
		b.Capabilities, b.Info = nil, nil
		return b
	case crewbody.SessionReady:
		b.Modes, b.Options = nil, nil
		return b
	case crewbody.Receipt:
		b.Files, b.Missing, b.Others = firstOf(b.Files), firstOf(b.Missing), firstOf(b.Others)
		b.Dirty = firstOf(b.Dirty)
		return b
	default:
		return body
	}
}

func firstOf(paths []string) []string { return paths[:min(len(paths), 50)] }
