package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// errUnexpected is the error of a run whose answer does not match.
var errUnexpected = errors.New("that is not the expected answer")

// runExample starts all processes, asks the question, and stops the processes.
func runExample(ctx context.Context, s settings, out, errs io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no answer within %s", s.timeout))
	defer cancel()
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	errs = &lockedWriter{to: errs}
	t := &processes{errs: errs, verbose: s.verbose, failed: failed}
	defer t.stop()
	p := &screen{out: out}
	err := t.answerQuestion(ctx, s, p)
	// The cause is more precise than context.Canceled.
	if cause := context.Cause(ctx); err != nil && ctx.Err() != nil {
		return cause
	}
	return err
}

// answerQuestion starts the processes, asks the question and checks the answer.
func (t *processes) answerQuestion(ctx context.Context, s settings, p *screen) error {
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

// open starts the processes. It returns the addresses of Kafka and the chat URL of the first agent.
func (t *processes) open(ctx context.Context, s settings, p *screen) (brokers []string, chat string, err error) {
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
	// The dispatcher, which issues callback tokens, and the callback door, which checks them, share this secret.
	secret := "TOOL_CALLBACK_SECRET=" + rand.Text() + rand.Text() // at least 32 bytes

	orchestratorAgent, orchestratorAddress, err := t.agent(ctx, p, orchestrator, kafka, secret, "ALLOWED_HOST_MAPPING=")
	if err != nil {
		return nil, "", err
	}
	// The worker has a registry of callback services by name. It does not know who calls it.
	mapping := "ALLOWED_HOST_MAPPING=" + orchestrator + ":http://" + orchestratorAddress
	workerAgent, workerAddress, err := t.agent(ctx, p, worker, kafka, "TOOL_CALLBACK_SECRET=", mapping)
	if err != nil {
		return nil, "", err
	}
	ready := []*child{orchestratorAgent, workerAgent}
	for _, role := range [][]string{
		{
			"dispatcher", "dispatcher", "AGENT_NAME=" + orchestrator, secret, "CALLBACK_SERVICE=" + orchestrator,
			"TARGET_CHAT_URL=http://" + workerAddress + turnhttp.ChatPath,
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
	return brokers, "http://" + orchestratorAddress + turnhttp.ChatPath, nil
}

// agent starts an agent on a free port and returns its address.
func (t *processes) agent(ctx context.Context, p *screen, name string, env ...string) (*child, string, error) {
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

// lockedWriter serializes the writes of several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// screen prints lines. It is safe for concurrent use.
type screen struct {
	mu  sync.Mutex
	out io.Writer
}

func (p *screen) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// note prints a line with a label.
func (p *screen) note(label, format string, args ...any) {
	p.line("%-13s %s", label, fmt.Sprintf(format, args...))
}
