package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// delegateTask is the tool with which the orchestrator calls the worker.
const delegateTask = "delegate_task"

// dispatcher implements an agent's delegate_task as an asynchronous tool: it posts the task to another agent's chat door, with
// a reply route to the agent's own callback door.
//
//	{agent}-tool-use --> dispatcher --POST /api/chat--> the other agent's door
type dispatcher struct {
	agent    string // whose tool calls are dispatched
	brokers  []string
	chat     string // URL of the other agent's chat door
	callback string // name of the agent's callback service in the other's registry
	secret   string // that signs callback tokens
	tokenTTL time.Duration
	logger   *zap.Logger

	client []processors.Option
	tools  tools.Config
}

// run dispatches calls until ctx ends.
func (d dispatcher) run(ctx context.Context) error {
	to, err := processors.NewPublisher(d.brokers, d.client...)
	if err != nil {
		return err
	}
	asks := newAsks()
	defer asks.CloseIdleConnections()
	config := d.tools
	config.TokenSecret, config.TokenTTL, config.Logger = d.secret, d.tokenTTL, d.logger
	worker, err := tools.NewWorker(d.agent, to, map[string]tools.Func{
		delegateTask: func(ctx context.Context, c tools.Call) (any, error) { return d.delegate(ctx, asks, c) },
	}, config)
	if err != nil {
		return err
	}
	return errors.Join(worker.Run(ctx, d.brokers, d.client...), to.Close())
}

// newAsks returns the client for requests to the other agent's chat door. It follows no redirects: body and callback token
// are for that door only.
func newAsks() *http.Client {
	c := sink.NewClient()
	c.Timeout = askTimeout
	return c
}

// question is the request body of the other agent's chat door.
type question struct {
	SessionID string `json:"session_id"`
	Content   string `json:"content"`
	Reply     reply  `json:"reply"`
}

// reply is the reply route: the service to call back and its bearer token.
type reply struct {
	CallbackService string `json:"callbackService"`
	BearerToken     string `json:"bearerToken"`
}

// subSession separates the caller's session from the call's ID in the name of the called agent's session.
const subSession = "--"

var errNoTask = errors.New("the input has no task")

// delegate posts the task and leaves the result to the callback. A repeat of the call has the same Idempotency-Key, so that
// the other agent answers once.
func (d dispatcher) delegate(ctx context.Context, asks *http.Client, c tools.Call) (any, error) {
	var input struct {
		Task string `json:"task"`
	}
	if err := c.Bind(&input); err != nil || strings.TrimSpace(input.Task) == "" {
		return nil, errNoTask
	}
	callback, err := c.Token()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(question{
		SessionID: c.SessionID + subSession + c.ToolUseID, Content: input.Task, Reply: reply{d.callback, callback},
	})
	if err != nil {
		return nil, errNoTask // the task is not valid UTF-8
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 200*time.Millisecond, 5*time.Second
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, d.ask(ctx, asks, c.Key(), body) },
		backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(askBudget))
	if after := new(backoff.RetryAfterError); errors.As(err, &after) {
		err = fmt.Errorf("%w: too many requests", errAsk)
	}
	if err != nil {
		d.logger.Warn("handing over a task failed; its call gets an error result", zap.String("tool_use_id", c.ToolUseID), zap.Error(err))
		return nil, err
	}
	return tools.Pending{}, nil
}

const (
	askTimeout = 15 * time.Second // one request
	askBudget  = time.Minute      // all retries
	maxAnswer  = 64 << 10         // bytes of a response that are read
)

// errAsk is the error for the model and the log. It does not contain the URL of the door.
var errAsk = errors.New("the task could not be handed over")

// ask posts a task once. An error that cannot be retried is permanent.
func (d dispatcher) ask(ctx context.Context, asks *http.Client, key string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.chat, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(errAsk)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	answer, err := asks.Do(r)
	if err != nil {
		return fmt.Errorf("%w: no connection", errAsk)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // so that the connection can be reused
	failed := fmt.Errorf("%w: status %d", errAsk, answer.StatusCode)
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		if after := sink.ParseRetryAfter(answer.Header.Get("Retry-After"), time.Now()); after > 0 && after <= askBudget {
			return backoff.RetryAfter(int(after.Seconds()))
		}
		return failed
	default:
		return backoff.Permanent(failed)
	}
}
