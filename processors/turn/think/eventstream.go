package think

import (
	"context"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// eventStream publishes the events of one call of a model: an attempt at a step. Its methods are called from one goroutine;
// another one publishes.
type eventStream struct {
	topic   topics.Topic[topics.AgentEvent]
	to      processors.Publisher
	logger  *zap.Logger
	step    Step
	attempt int64

	open   *blockKind
	id     string
	blocks int

	mu      sync.Mutex
	pending []event
	closed  bool
	wake    chan struct{} // capacity 1
	done    chan struct{} // closed when the publishing goroutine has returned
	cancel  context.CancelFunc
	seq     int64 // of the last record; used by the publishing goroutine only, until done is closed
	err     error // why the events are not complete; set before done is closed
}

// event is an event that is not published yet: a piece of a block's text, or a complete event.
type event struct {
	block *blockKind
	id    string
	text  []byte
	raw   topics.Raw
}

// blockKind is a kind of block and its events.
type blockKind struct{ prefix, start, delta, end string }

var (
	textBlock    = blockKind{"msg-", "message_start", "message_delta", "message_end"}
	thoughtBlock = blockKind{"reason-", "thought_start", "thought_delta", "thought_end"}
)

const (
	// maxPiece is the largest text of an event, in bytes. A longer one becomes several events.
	maxPiece = 16 << 10
	// endGrace is how long the last events may take after the step's context has ended.
	endGrace = 5 * time.Second
)

// open starts the event stream of a call. The caller must call end.
func (s *streamed) open(ctx context.Context, step Step) *eventStream {
	// The step's context does not interrupt a record: the events of a reply are published also if the deadline has passed.
	publishing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &eventStream{
		topic: s.topic, to: s.to, logger: s.logger, step: step, attempt: s.nextAttempt(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), cancel: cancel,
	}
	go func() {
		defer close(e.done)
		e.run(publishing)
	}()
	return e
}

// add adds the events of a piece.
func (e *eventStream) add(d Delta) {
	e.piece(&thoughtBlock, d.Thought)
	e.piece(&textBlock, d.Text)
	if d.EndBlock || d.Call != nil {
		e.closeBlock()
	}
	if d.Call != nil {
		input := d.Call.Input
		if input == nil {
			input = topics.Raw("{}")
		}
		data := quoted([]byte(`{"type":"tool_call","id":`), d.Call.ID)
		data = append(append(quoted(append(data, `,"name":`...), d.Call.Name), `,"input":`...), input...)
		e.push(event{raw: wrapped("tool_call", append(data, '}'))})
	}
}

func (e *eventStream) piece(k *blockKind, text string) {
	if text == "" {
		return
	}
	if e.open != k {
		e.closeBlock()
		e.open, e.id = k, k.prefix+strconv.FormatInt(e.step.Number, 10)+"-"+strconv.Itoa(e.blocks)
		e.blocks++
		e.push(event{raw: blockEvent(k.start, e.id, nil)})
	}
	e.push(event{block: k, id: e.id, text: []byte(text)})
}

func (e *eventStream) closeBlock() {
	if e.open != nil {
		e.push(event{raw: blockEvent(e.open.end, e.id, nil)})
		e.open = nil
	}
}

// end waits until all events are acknowledged, or the step's context has ended and a grace period is over. It returns the
// attempt and its last record; whole is false if events are missing. Without a reply it does not wait for events after the end
// of the context: the caller needs none.
func (e *eventStream) end(ctx context.Context, replied bool) (a topics.AgentAttempt, whole bool) {
	defer e.cancel()
	e.closeBlock()
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.signal()
	select {
	case <-e.done:
	case <-ctx.Done():
		if !replied {
			e.cancel()
		}
		grace := time.AfterFunc(endGrace, e.cancel)
		defer grace.Stop()
		<-e.done
	}
	return topics.AgentAttempt{Attempt: e.attempt, Seq: e.seq}, e.err == nil
}

// push adds an event. A piece of text is joined to the one before it.
func (e *eventStream) push(v event) {
	e.mu.Lock()
	if last := len(e.pending) - 1; e.err != nil {
		e.pending = nil
	} else if v.block != nil && last >= 0 && e.pending[last].block != nil && e.pending[last].id == v.id {
		e.pending[last].text = append(e.pending[last].text, v.text...)
	} else {
		e.pending = append(e.pending, v)
	}
	e.mu.Unlock()
	e.signal()
}

func (e *eventStream) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// run publishes events until the last one is acknowledged or ctx ends.
func (e *eventStream) run(ctx context.Context) {
	for {
		e.mu.Lock()
		batch, closed := e.pending, e.closed
		e.pending = nil
		e.mu.Unlock()
		if err := e.write(ctx, e.records(batch)); err != nil {
			e.logger.Warn("the events of a call end early", zap.String("step", e.step.Key), zap.Error(err))
			e.stop(err)
			return
		}
		if closed {
			return
		}
		select {
		case <-e.wake:
		case <-ctx.Done():
			e.stop(ctx.Err())
			return
		}
	}
}

// stop drops the events that are not published, and those that follow.
func (e *eventStream) stop(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err, e.pending = err, nil
}

func (e *eventStream) write(ctx context.Context, records []processors.Outbound) error {
	if len(records) == 0 {
		return nil
	}
	return retry.Until(ctx, func() error { return e.to.Publish(ctx, records...) }, func(err error) {
		e.logger.Warn("events are not written yet", zap.String("topic", e.topic.Name()), zap.Error(err))
	}, processors.ErrTooLarge, processors.ErrPublisherClosed)
}

// records numbers events and returns their records.
func (e *eventStream) records(batch []event) []processors.Outbound {
	var all []processors.Outbound
	for _, v := range batch {
		for _, record := range v.split() {
			e.seq++
			record.SessionID, record.TurnID, record.Step = e.step.SessionID, e.step.TurnID, e.step.Number
			record.Attempt, record.Seq = e.attempt, e.seq
			if e.seq == 1 {
				record.Request = e.step.request
			}
			id := e.step.Key + "/event/" + strconv.FormatInt(e.attempt, 10) + "/" + strconv.FormatInt(e.seq, 10)
			out, err := processors.OutboundOf(e.topic, e.step.SessionID, record, id)
			if err != nil {
				e.seq-- // the codec encodes every event that wrapped returns
				continue
			}
			all = append(all, out)
		}
	}
	return all
}

// split returns the records of an event, without their numbers.
func (v event) split() []topics.AgentEvent {
	if v.block == nil {
		return []topics.AgentEvent{{Event: v.raw}}
	}
	var all []topics.AgentEvent
	for text := v.text; len(text) > 0; {
		n := min(len(text), maxPiece)
		for n < len(text) && n > maxPiece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n-- // a character is not divided
		}
		all = append(all, topics.AgentEvent{Event: blockEvent(v.block.delta, v.id, text[:n])})
		text = text[n:]
	}
	return all
}

// blockEvent returns an event of a block. text is the text of a delta, nil for other events.
func blockEvent(kind, id string, text []byte) topics.Raw {
	data := quoted(append(quoted([]byte(`{"type":`), kind), `,"id":`...), id)
	if text != nil {
		data = quoted(append(data, `,"delta":`...), string(text))
	}
	return wrapped(kind, append(data, '}'))
}

// wrapped returns an event with its data.
func wrapped(kind string, data []byte) topics.Raw {
	raw := append(quoted([]byte(`{"type":`), kind), `,"data":`...)
	return append(append(raw, data...), '}')
}
