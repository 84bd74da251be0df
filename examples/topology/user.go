package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// mira is the user of the sessions.
var mira = "mira"

// user asks a question, waits for the answer, and asks the next one.
type user struct {
	journal   *journal
	publisher processors.Publisher
	topics    topics.Catalog // of the orchestrator
	screen    *screen
	session   string
	lines     <-chan string   // of standard input; nil if it is not read
	decided   map[string]bool // the gates that the user was asked about

	asked  int   // the number of the last question
	failed error // the last question ended in an error
}

// requestID returns the request ID of the n-th question of a session.
func requestID(n int) string { return "question-" + strconv.Itoa(n) }

// resume waits for the questions that earlier runs have asked. before is false if there are none.
func (u *user) resume(ctx context.Context) (before bool, err error) {
	var questions []asked
	u.journal.look(func(s *seen) { questions = append(questions, s.questions[u.session]...) })
	for _, q := range questions {
		n, err := strconv.Atoi(strings.TrimPrefix(q.request, "question-"))
		if err != nil {
			continue // another program's
		}
		u.asked = max(u.asked, n)
		u.screen.note(bold, "asked", "%s (before this run)", q.text)
		if err := u.await(ctx, q.request, u.count()); err != nil {
			return true, err
		}
	}
	return u.asked > 0, nil
}

// ask writes a question and waits for its answer.
func (u *user) ask(ctx context.Context, text string) error {
	u.asked++
	u.screen.note(bold, "asked", "%s", text)
	request, before := requestID(u.asked), u.count()
	if err := publish(ctx, u.publisher, u.topics.MessageInput, u.session, question(u.session, &mira, request, text)); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return u.await(ctx, request, before)
}

func (u *user) count() (t tally) {
	u.journal.look(func(s *seen) { t = s.count })
	return t
}

var errAnswer = errors.New("the question ended in an error")

// await prints the answer to a question, and what was counted since before. The user decides about the gates that open meanwhile.
func (u *user) await(ctx context.Context, request string, before tally) error {
	begin := time.Now()
	var answer topics.Output
	for done := false; !done; {
		var gate *topics.GateRequest
		if err := u.journal.wait(ctx, func(s *seen) bool {
			answer, done = s.answers[answerKey(u.session, request)]
			gate = u.open(s)
			return done || gate != nil
		}); err != nil {
			return err
		}
		if !done {
			if err := u.decide(ctx, *gate); err != nil {
				return err
			}
		}
	}
	took := time.Since(begin)
	u.journal.settle(ctx)
	u.failed = nil
	if answer.Error != nil {
		u.failed = fmt.Errorf("%w: %s: %s", errAnswer, answer.Error.Code, answer.Error.Message)
		u.screen.note(red, "error", "%s: %s", answer.Error.Code, answer.Error.Message)
	} else {
		u.screen.note(green, "answer", "%s", answer.Content)
	}
	if now := u.count(); now != before { // else it was answered before this run
		u.screen.note(grey, "summary", "%d turns, %d records, %d ms", now.turns-before.turns, now.records-before.records, took.Milliseconds())
	}
	return nil
}

// readOn asks each line of standard input, until it or ctx ends.
func (u *user) readOn(ctx context.Context, in io.Reader) error {
	for {
		u.screen.prompt(in)
		select {
		case line, ok := <-u.lines:
			if !ok {
				return nil
			}
			if strings.TrimSpace(line) == "" {
				continue
			}
			if err := u.ask(ctx, line); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
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

// publish writes a record.
func publish[T any](ctx context.Context, to processors.Publisher, t topics.Topic[T], key string, value T) error {
	record, err := processors.OutboundOf(t, key, value, "")
	if err != nil {
		return err
	}
	return to.Publish(ctx, record)
}
