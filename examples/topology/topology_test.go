package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// buffer is what a program writes while a test reads it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// firstAnswer is what firstQuestion ends in.
var firstAnswer = regexp.MustCompile(
	`(?m)^answer   17\.5 \* 4 is 70; it is \d\d:\d\d:\d\d \(UTC\); the area of a table of 12 by 7 is 84\.$`,
)

var firstSummary = regexp.MustCompile(`(?m)^summary  2 turns, \d+ records, \d+ ms$`)

func TestFirstQuestionIsAnswered(t *testing.T) {
	out, errs := new(buffer), new(buffer)
	require.Zero(t, command(deadline(t), []string{"-once"}, strings.NewReader("never read\n"), out, errs), errs)
	require.Empty(t, errs.String())
	require.Regexp(t, firstAnswer, out)
	require.Regexp(t, firstSummary, out)
	require.NotContains(t, out.String(), "\x1b", "colours are for terminals")
	require.NotContains(t, out.String(), "-dlq")

	require.Contains(t, out.String(), "all 3 results are there")

	// Every record on the way is shown. (The copy of the results on message-input is not on the way: it can be written after a model
	// that takes no time has answered.) The order is that of timestamps: the turn dates the records of one callback a millisecond apart,
	// so the answer of a model that takes less can be dated before its question.
	for _, step := range []string{
		`orchestrator-message-input +demo +user: What is`,
		`orchestrator-enriched-message-input +demo +user input, 0 messages of history`,
		`orchestrator-think-request-response +demo +asks for calculator, clock, delegate_task`,
		`orchestrator-tool-use +demo +delegate_task {"task":"Work out the area of a table of 12 by 7."}`,
		`worker-message-input +demo--call_\w+… +user: Work out the area`,
		`worker-think-request-response +demo--call_\w+… +asks for calculator`,
		`worker-tool-use-result +demo--call_\w+… +calculator success {"text":"12 \* 7 is 84","value":84}`,
		`worker-message-output +demo--call_\w+… +the area of a table of 12 by 7 is 84`,
		`worker-reply-to +demo--call_\w+… +the answer is for orchestrator`,
		`worker-deliveries +demo--call_\w+… +attempt 1 to call orchestrator back`,
		`worker-delivery-receipts +demo--call_\w+… +attempt 1: delivered`,
		`orchestrator-tool-use-result +demo +delegate_task success {"result":"the area of a table of 12 by 7 is 84"}`,
		`orchestrator-enriched-message-input +demo +tool input, 2 messages of history`,
		`orchestrator-think-request-response +demo +says: 17`,
		`orchestrator-message-output +demo +17`,
	} {
		require.Regexp(t, `(?m)^\d\d:\d\d:\d\d\.\d{3}  `+step, out)
	}
}

func TestFurtherQuestionsReadTheHistory(t *testing.T) {
	out, errs := new(buffer), new(buffer)
	in := strings.NewReader("Double that.\n\nAgain?\n1 / 0\nHello")
	require.Zero(t, command(deadline(t), []string{"-plain"}, in, out, errs), errs)
	answers := regexp.MustCompile(`(?m)^answer   (.*)$`).FindAllStringSubmatch(out.String(), -1)
	require.Len(t, answers, 5)
	require.Equal(t, "2 * 70 is 140.", answers[1][1])
	require.Equal(t, "2 * 70 is 140.", answers[2][1])
	require.Equal(t, "Calculator failed (division by zero).", answers[3][1])
	require.Contains(t, answers[4][1], "You have asked 5 so far.")
}

func TestInterruptEndsWithoutAnError(t *testing.T) {
	ctx, interrupt := context.WithCancel(deadline(t))
	in, typed := io.Pipe()
	defer typed.Close()
	out, errs, code := new(buffer), new(buffer), make(chan int, 1)
	go func() { code <- command(ctx, []string{"-plain"}, in, out, errs) }()
	require.Eventually(t, func() bool { return firstSummary.MatchString(out.String()) }, time.Minute, 10*time.Millisecond)
	interrupt()
	require.Zero(t, <-code, errs)
	require.Empty(t, errs.String())
}

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{{"-no-such"}, {"question"}, {"-inspect", "demo"}, {"-session", " "}} {
		errs := new(buffer)
		require.Equal(t, 2, command(t.Context(), args, nil, io.Discard, errs), args)
		require.NotEmpty(t, errs.String())
	}
	require.Zero(t, command(t.Context(), []string{"-h"}, nil, io.Discard, io.Discard))
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestConsoleIsOpenUntilTheEnd(t *testing.T) {
	ctx, stop := context.WithCancel(deadline(t))
	out, errs := new(buffer), new(buffer)
	code := make(chan int, 1)
	go func() { code <- command(ctx, nil, strings.NewReader(""), out, errs) }()
	var address string
	require.Eventually(t, func() bool {
		address, _, _ = strings.Cut(out.String(), "\n")
		return strings.Contains(out.String(), "decide it in the console")
	}, time.Minute, 10*time.Millisecond, errs)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/console/$`, address, "the first line")
	require.Regexp(t, firstAnswer, out)
	require.NotContains(t, out.String(), "orchestrator-tool-use ", "records are in the console")
	get := func(path string) string {
		r, err := http.Get(address + path)
		require.NoError(t, err)
		defer r.Body.Close()
		page, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(page)
	}
	require.Eventually(t, func() bool { return strings.Contains(get("gates"), "calculator") }, time.Minute, 50*time.Millisecond)
	require.Contains(t, get("session?id=demo"), "delegate_task")
	stop()
	require.Zero(t, <-code, errs)
	require.Empty(t, errs.String())
	http.DefaultClient.CloseIdleConnections()
}
