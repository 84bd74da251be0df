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

// delegateTask is the tool by which the orchestrator asks the worker.
const delegateTask = "delegate_task"

// dispatcher makes an agent's delegate_task a question to another agent: an asynchronous tool, whose result is posted
// back to the agent that asked. It knows where to ask and what to be called back as; that an agent answers, and not a
// person, it does not know.
//
//	{agent}-tool-use --> dispatcher --POST /api/chat--> the other agent's door
type dispatcher struct {
	agent    string // whose calls
	brokers  []string
	chat     string // URL of the door that is asked
	callback string // name of the agent's own service in the other's registry
	secret   string // of callback tokens
	tokenTTL time.Duration
	logger   *zap.Logger

	client []processors.Option
	tools  []tools.Option
}

// run ends with ctx.
func (d dispatcher) run(ctx context.Context) error {
	to, err := processors.NewPublisher(d.brokers, d.client...)
	if err != nil {
		return err
	}
	asks := &http.Client{Timeout: askTimeout, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer asks.CloseIdleConnections()
	worker, err := tools.New(d.agent, to, map[string]tools.Func{
		delegateTask: func(ctx context.Context, c tools.Call) (any, error) { return d.delegate(ctx, asks, c) },
	}, append([]tools.Option{tools.WithTokens(d.secret, d.tokenTTL), tools.WithLogger(d.logger)}, d.tools...)...)
	if err != nil {
		return err
	}
	return errors.Join(worker.Run(ctx, d.brokers, d.client...), to.Close())
}

// question is what the other agent's door is asked.
type question struct {
	SessionID string `json:"session_id"`
	Content   string `json:"content"`
	Reply     reply  `json:"reply"`
}

// reply names the service to call back, and the token that it wants.
type reply struct {
	CallbackService string `json:"callbackService"`
	BearerToken     string `json:"bearerToken"`
}

// subSession stands between the session that delegates and the call, in the name of the session that is delegated to.
const subSession = "--"

var errNoTask = errors.New("the input has no task")

// delegate asks, and leaves the result to the callback. A call that is made again asks under the same key, so that the
// other agent answers once.
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
		return nil, errNoTask // it is no UTF-8
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 200*time.Millisecond, 5*time.Second
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, d.ask(ctx, asks, c.Key(), body) },
		backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(askFor))
	if after := new(backoff.RetryAfterError); errors.As(err, &after) {
		err = fmt.Errorf("%w: it is asked too often", errAsk)
	}
	if err != nil {
		d.logger.Warn("task was not handed over", zap.String("tool_use_id", c.ToolUseID), zap.Error(err))
		return nil, err
	}
	return tools.Pending{}, nil
}

const (
	askTimeout = 15 * time.Second // one request
	askFor     = time.Minute      // all of them
	maxAnswer  = 64 << 10         // bytes that are read of an answer
)

// errAsk is what the model is told, and the log: where the door is is nobody's business.
var errAsk = errors.New("the task could not be handed over")

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
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // so that the connection can be used again
	failed := fmt.Errorf("%w: status %d", errAsk, answer.StatusCode)
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		if after := sink.ParseRetryAfter(answer.Header.Get("Retry-After"), time.Now()); after > 0 && after <= askFor {
			return backoff.RetryAfter(int(after.Seconds()))
		}
		return failed
	default:
		return backoff.Permanent(failed)
	}
}
