package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/turntable-streams/turntable/processors/turn"
)

// errUnexpected is what a run ends with whose answer is not the expected one.
var errUnexpected = errors.New("that is not the expected answer")

// conduct starts everything, asks, and stops everything.
func conduct(ctx context.Context, s settings, out, errs io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no answer within %s", s.timeout))
	defer cancel()
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	errs = &lines{to: errs}
	t := &troupe{errs: errs, verbose: s.verbose, failed: failed}
	defer t.stop()
	p := &screen{out: out}
	err := t.perform(ctx, s, p)
	// What ended the context says more than that it has ended.
	if cause := context.Cause(ctx); err != nil && ctx.Err() != nil {
		return cause
	}
	return err
}

// perform asks the question and judges the answer.
func (t *troupe) perform(ctx context.Context, s settings, p *screen) error {
	brokers, chat, err := t.open(ctx, s, p)
	if err != nil {
		return err
	}
	flow, err := newFlow(ctx, brokers, s.session, p)
	if err != nil {
		return err
	}
	defer flow.close()
	request := "question-1"
	if err := post(ctx, chat, s.session, request, s.question, p); err != nil {
		return err
	}
	answer, err := flow.answer(ctx, request)
	if err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("the question ended in an error: %s: %s", answer.Error.Code, answer.Error.Message)
	}
	p.note("answer", "%s", answer.Content)
	if !s.expect.MatchString(answer.Content) {
		return fmt.Errorf("%w: want %s", errUnexpected, s.expect)
	}
	return nil
}

// open starts the processes, and says where Kafka and the first agent's door for messages are.
func (t *troupe) open(ctx context.Context, s settings, p *screen) (brokers []string, chat string, err error) {
	brokers = s.brokers
	if brokers == nil {
		broker, err := t.start("broker", "broker")
		if err != nil {
			return nil, "", err
		}
		addresses, err := broker.awaitAddress(ctx)
		if err != nil {
			return nil, "", err
		}
		brokers = strings.Split(addresses, ",")
	}
	kafka := "KAFKA_BOOTSTRAP_SERVERS=" + strings.Join(brokers, ",")
	p.note("broker", "%s", strings.Join(brokers, ","))
	// The token's maker and its judge know it: the dispatcher and the door that is called back.
	secret := "TOOL_CALLBACK_SECRET=" + rand.Text()

	asking, asked, err := t.agent(ctx, p, orchestrator, kafka, secret, "ALLOWED_HOST_MAPPING=")
	if err != nil {
		return nil, "", err
	}
	// The worker knows who may be called back, by name; who calls it, it does not know.
	mapping := "ALLOWED_HOST_MAPPING=" + orchestrator + ":http://" + asked
	working, tasked, err := t.agent(ctx, p, worker, kafka, "TOOL_CALLBACK_SECRET=", mapping)
	if err != nil {
		return nil, "", err
	}
	ready := []*child{asking, working}
	for _, role := range [][]string{
		{
			"dispatcher", "dispatcher", "AGENT_NAME=" + orchestrator, secret, "CALLBACK_SERVICE=" + orchestrator,
			"TARGET_CHAT_URL=http://" + tasked + turn.ChatPath,
		},
		{orchestrator + "'s model", "model", "AGENT_NAME=" + orchestrator},
		{worker + "'s model", "model", "AGENT_NAME=" + worker},
	} {
		c, err := t.start(role[0], role[1], append(role[2:], kafka)...)
		if err != nil {
			return nil, "", err
		}
		ready = append(ready, c)
	}
	for _, c := range ready {
		if err := c.awaitReady(ctx); err != nil {
			return nil, "", err
		}
	}
	return brokers, "http://" + asked + turn.ChatPath, nil
}

// agent starts an agent on a free port.
func (t *troupe) agent(ctx context.Context, p *screen, name string, env ...string) (*child, string, error) {
	c, err := t.start(name, "agent", append(env, "AGENT_NAME="+name, "BIND_HOST=127.0.0.1", "PORT=0")...)
	if err != nil {
		return nil, "", err
	}
	address, err := c.awaitAddress(ctx)
	if err != nil {
		return nil, "", err
	}
	p.note(name, "http://%s", address)
	return c, address, nil
}

// lines is a writer that several goroutines write whole lines to.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// screen prints for people; its methods may be called concurrently.
type screen struct {
	mu  sync.Mutex
	out io.Writer
}

func (p *screen) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// note is a line with a word in front that says what it is.
func (p *screen) note(word, format string, args ...any) {
	p.line("%-13s %s", word, fmt.Sprintf(format, args...))
}
