package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// asker is the user of the session: it asks a question, waits for the answer, and asks the next one.
type asker struct {
	recorder *recorder
	screen   *screen
	now      func() time.Time
	before   []exchange // of earlier runs
	open     map[string]waiter
	asked    int // the number of the last question
	failed   error
	lines    <-chan string // of standard input; nil if it is not read
}

// newAsker registers waits for the questions that earlier runs left open. The recorder must not run yet, because the answers
// can arrive as soon as the pipeline starts.
func newAsker(recorder *recorder, screen *screen, now func() time.Time, before []exchange) *asker {
	a := &asker{recorder: recorder, screen: screen, now: now, before: before, open: make(map[string]waiter)}
	for _, e := range before {
		a.asked = max(a.asked, requestNumber(e.request))
		if e.output == nil {
			a.open[e.request] = recorder.expect(e.request)
		}
	}
	return a
}

// errAnswer is the error of a run whose last question ended in an error output.
var errAnswer = errors.New("the question ended in an error")

// resume continues the session: it waits for open questions, and asks the first question only if the session has none.
func (a *asker) resume(ctx context.Context) error {
	for _, e := range a.before {
		a.screen.note(bold, "asked", "%s (before this run)", oneLine(e.question))
		if e.output != nil {
			a.answer(*e.output)
			continue
		}
		if err := a.await(ctx, a.open[e.request], tally{}); err != nil {
			return err
		}
	}
	if len(a.before) == 0 {
		return a.ask(ctx, firstQuestion)
	}
	return nil
}

// readLines returns the lines of in. The channel is closed at its end.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	scanner := bufio.NewScanner(in)
	go func() { // ends with in: a read cannot be cancelled
		defer close(lines)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// readOn asks each line of standard input, until it or ctx ends.
func (a *asker) readOn(ctx context.Context, in io.Reader) error {
	for {
		a.screen.prompt(in)
		select {
		case line, ok := <-a.lines:
			if !ok {
				return nil
			}
			if strings.TrimSpace(line) == "" {
				continue
			}
			if err := a.ask(ctx, line); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *asker) ask(ctx context.Context, question string) error {
	a.asked++
	request := requestID(a.asked)
	a.screen.note(bold, "asked", "%s", oneLine(question))
	answer, before := a.recorder.expect(request), a.recorder.tally()
	session, who := a.recorder.session, user
	m := message{
		SessionID: &session, UserID: &who, Role: "user", Content: text(question), Timestamp: stamp(a.now()),
		Metadata: encode(metadata{RequestID: request}),
	}
	record := &kgo.Record{Topic: topicOf(orchestrator, messageInput), Key: []byte(session), Value: encode(m)}
	if err := a.recorder.client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return a.await(ctx, answer, before)
}

func (a *asker) await(ctx context.Context, answer waiter, before tally) error {
	begin := a.now()
	var out output
	for waiting := true; waiting; {
		select {
		case out = <-answer:
			waiting = false
		case g := <-a.recorder.gates:
			if err := a.decide(ctx, g); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	took := a.now().Sub(begin)
	a.recorder.settle(ctx)
	a.answer(out)
	passed := a.recorder.tally().since(before)
	a.screen.note(grey, "summary", "%d turns, %d hops, %d ms", passed.turns, passed.hops, took.Milliseconds())
	return nil
}

func (a *asker) answer(out output) {
	if out.Error != nil {
		a.failed = fmt.Errorf("%w: %s: %s", errAnswer, out.Error.Code, out.Error.Message)
		a.screen.note(red, "error", "%s: %s", out.Error.Code, out.Error.Message)
		return
	}
	a.failed = nil
	a.screen.note(green, "answer", "%s", out.Content)
}
