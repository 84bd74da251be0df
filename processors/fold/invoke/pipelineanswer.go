package invoke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

// maxBy is the maximum length of the name of who decides, in bytes, and maxAnswer that of a value.
const (
	maxBy     = 256
	maxAnswer = 256 << 10
)

// viaInvoke is the door of the decisions.
const viaInvoke = "invoke"

// Answers reports whether requests can answer the interactions of paused turns, as PipelineConfig.Gates says. New asks its
// agent: if so, the door admits callers with either of the rights auth.Write and auth.Answer, and Invoke checks which one a
// request needs.
func (p *Pipeline) Answers() bool { return p.config.Gates }

var errForbidden = &Error{Status: http.StatusForbidden, Type: TypeUnknown, Text: "Forbidden"}

// errDecided is the answer to a decision about a gate with another outcome.
func errDecided(o *topics.GateOutcome) *Error {
	e := &Error{Status: http.StatusConflict, Type: TypeUnknown, Code: "decided", Text: "the interaction was answered by an event"}
	if o == nil {
		return e
	}
	e.Text = "the interaction is decided already: " + string(o.Status)
	e.outcome = newObject().text("gate_id", o.GateID).text("status", string(o.Status)).text("cause", string(o.Cause)).
		nonEmpty("decision_id", o.DecisionID).nonEmpty("option_id", o.OptionID).nonEmpty("reason", o.Reason).nonEmpty("by", o.By).
		with("waited_ms", topics.Raw(strconv.FormatInt(o.WaitedMS, 10))).value()
	return e
}

// errTwoTurns is the answer to a request that decides interactions of several turns: its response is one turn.
var errTwoTurns = &Error{
	Status: http.StatusUnprocessableEntity, Type: TypeUnknown, Code: "invalid_answer",
	Text: "the answers belong to several turns; send a request for each",
}

var errLargeAnswer = &Error{Status: http.StatusRequestEntityTooLarge, Type: TypeUnknown, Text: "the answer is too large"}

// answer continues a paused turn if the request answers its interactions. It returns nil for any other request.
func (p *Pipeline) answer(ctx context.Context, r Request) (*pipelineStream, error) {
	replies, err := repliesOf(r.Messages())
	if err != nil || len(replies) == 0 {
		return nil, err
	}
	mayAnswer := r.Caller.Can(auth.Answer)
	if !mayAnswer && slices.ContainsFunc(replies, func(r reply) bool { return r.decides }) { // before the turns are read
		return nil, errForbidden
	}
	all, m, err := p.matched(ctx, r, replies)
	switch {
	case err != nil:
		return nil, err
	case len(m.open)+len(m.decided) == 0: // results in the client's history
		return nil, nil
	case !mayAnswer:
		return nil, errForbidden
	case len(m.open) == 0:
		return p.repeated(ctx, r, all, m.decided)
	}
	first := all[m.open[0].at]
	var outs []processors.Outbound
	var awaits []awaited
	after := int64(0)
	for _, one := range m.open {
		to := all[one.at]
		if to.turn != first.turn || to.attempt != first.attempt {
			return nil, errTwoTurns
		}
		after = max(after, to.after)
		d := p.decision(r, one, to)
		switch {
		case one.digest != "" && one.digest != d.ArgsSHA256:
			return nil, errDigest
		case d.Verdict == topics.VerdictApprove && one.digest == "" && to.blind():
			return nil, errNotShown
		}
		if len(d.Answer) > maxAnswer {
			return nil, errLargeAnswer
		}
		out, err := processors.OutboundOf(p.topics.GateDecisions, r.SessionID, d, d.DecisionID)
		if err != nil {
			return nil, fmt.Errorf("invoke: decision: %w", err)
		}
		outs, awaits = append(outs, out), append(awaits, awaited{d.GateID, d.DecisionID, d.Verdict})
	}
	return p.continued(ctx, r, EventID{first.turn, uint64(first.attempt), uint64(after)}, func(s *pipelineStream) error {
		if err := p.decide(ctx, outs); err != nil {
			return err
		}
		s.awaits = awaits
		return s.await(ctx)
	})
}

// decide writes decisions. A client that disconnects does not cancel the write.
func (p *Pipeline) decide(ctx context.Context, outs []processors.Outbound) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	for _, out := range outs {
		switch err := p.to.Publish(ctx, out); {
		case errors.Is(err, processors.ErrTooLarge):
			return errLargeAnswer
		case err != nil:
			return fmt.Errorf("invoke: publish a decision: %w", err)
		}
	}
	return nil
}

// repeated answers a request whose interactions are all decided: the turn after the pause if the request repeats the
// decisions, otherwise the outcome of the first one that it does not repeat.
func (p *Pipeline) repeated(ctx context.Context, r Request, all []gated, decided []match) (*pipelineStream, error) {
	last := all[decided[0].at]
	for _, one := range decided {
		to := all[one.at]
		d := p.decision(r, one, to)
		if to.outcome == nil || !(awaited{d.GateID, d.DecisionID, d.Verdict}).agrees(to.outcome) {
			return nil, errDecided(to.outcome)
		}
		if to.turn != last.turn || to.attempt != last.attempt {
			return nil, errTwoTurns
		}
		if to.after > last.after {
			last = to
		}
	}
	return p.continued(ctx, r, EventID{last.turn, uint64(last.attempt), uint64(last.after)}, nil)
}

// continued returns the stream of a turn after a pause. written is called when the stream receives the records of its session.
func (p *Pipeline) continued(ctx context.Context, r Request, after EventID, written func(*pipelineStream) error) (*pipelineStream, error) {
	s, known := p.open(r, after.Turn)
	s.sequence.attempt, s.after = int64(after.Attempt), after
	err := s.begin(ctx, known, after)
	if err == nil && written != nil {
		err = written(s)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// decision returns the record of an answer. The arguments are those of the turn: what the client's history says has no effect.
func (p *Pipeline) decision(r Request, m match, to gated) topics.GateDecision {
	d := topics.GateDecision{
		GateID: to.gate, SessionID: r.SessionID, Verdict: m.verdict(to), Reason: m.reason, ArgsSHA256: topics.ArgsSHA256(to.Args),
		By: r.Caller.Name(), Via: viaInvoke,
	}
	if sum := textOf(member(to.Payload, "argsSha256")); to.gate == to.ID && sum != "" {
		d.ArgsSHA256 = sum // the request is the turn's own: large arguments are only in the gate
	}
	if d.By == "" {
		d.By = "anonymous"
	}
	d.By = truncate.Text(d.By, maxBy)
	if d.Verdict == topics.VerdictAnswer {
		d.Answer = m.answer()
	}
	if r.IdempotencyKey != "" {
		d.DecisionID = derived("decision", p.topics.Agent, r.SessionID, r.IdempotencyKey, d.GateID)
	} else {
		d.DecisionID = derived("decision", d.GateID, string(d.Verdict), string(d.Answer))
	}
	return d
}

// matched finds the interactions that a request answers. If it answers no open one, the index may be behind the client.
func (p *Pipeline) matched(ctx context.Context, r Request, replies []reply) (all []gated, m matches, err error) {
	for _, caughtUp := range []bool{false, true} {
		if caughtUp {
			if err := p.catchUp(ctx, r.SessionID); err != nil {
				return nil, matches{}, err
			}
		}
		if all, err = p.gatesOf(ctx, r); err != nil {
			return nil, matches{}, err
		}
		if m, err = matchReplies(replies, all); err == nil && len(m.open) > 0 {
			return all, m, nil
		}
	}
	return all, m, err
}

// gatesOf returns the interactions of a session's turns that may wait for an answer, those of older turns first.
func (p *Pipeline) gatesOf(ctx context.Context, r Request) (all []gated, err error) {
	turns := p.hub.mayWait(r.SessionID)
	slices.Reverse(turns)
	lists := make([][]gated, len(turns))
	tasks, ctx := errgroup.WithContext(ctx)
	for i, known := range turns {
		if known.began.After(p.config.Clock.Now().Add(-p.config.Lookback)) {
			tasks.Go(func() (err error) {
				lists[i], err = p.gatesIn(ctx, r, known)
				return err
			})
		}
	}
	err = tasks.Wait()
	return slices.Concat(lists...), err
}

// gatesIn reads the records of a turn that the index has. If events of a step were replaced, it reads them again.
func (p *Pipeline) gatesIn(ctx context.Context, r Request, known indexedTurn) ([]gated, error) {
	order := sequence{resumes: true}
	for {
		found, err := p.readGates(ctx, r, known, &order)
		switch {
		case errors.Is(err, errReplaced):
			continue
		case err != nil:
			return nil, err
		}
		found.ended = found.ended || known.end != nil
		return found.gates(r.SessionID, known.turn, order.attempt, func(gate string) *topics.GateOutcome {
			return p.hub.outcome(r.SessionID, gate)
		}), nil
	}
}

// readGates reads the records of a turn once. It returns errReplaced if other events of a step have to be read.
func (p *Pipeline) readGates(ctx context.Context, r Request, known indexedTurn, order *sequence) (*pauses, error) {
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	read := p.replay(ctx, r.callerKey, r.SessionID, known.turn, section{known.partition, known.first, known.last + 1})
	found, replaced := newPauses(known.turn), error(nil)
	for l := range read.records {
		if l.event == nil || l.event.TurnID != known.turn {
			continue
		}
		ready, err := order.add(*l.event)
		if errors.Is(err, errAttempt) {
			order.restart(l.event.Attempt)
			found = newPauses(known.turn)
			ready, err = order.add(*l.event)
		}
		for _, e := range ready {
			found.record(e, l.at)
		}
		if err != nil { // records are missing: the interactions before the gap are known
			if errors.Is(err, errReplaced) {
				replaced = err
			}
			break
		}
	}
	cancel()
	for range read.records { // wait until the replay has ended
		continue
	}
	switch {
	case asked.Err() != nil:
		return nil, asked.Err()
	case read.err != nil && !errors.Is(read.err, context.Canceled):
		return nil, notConnected(asked, read.err)
	}
	return found, replaced
}
