package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/anthropic"
	"github.com/turntable-streams/turntable/processors/turn/think/gemini"
	"github.com/turntable-streams/turntable/processors/turn/think/openai"
)

// setenv sets these variables and unsets all others that the example reads.
func setenv(t *testing.T, variables ...string) {
	t.Helper()
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // otherwise children wait one second at exit
	for _, name := range []string{
		"AGENT_NAME", "TARGET_CHAT_URL", "CALLBACK_SERVICE", "TOOL_CALLBACK_SECRET", "TOKEN_TTL_SEC", "ANTHROPIC_API_KEY",
		"OPENAI_API_KEY", "GEMINI_API_KEY", "MODEL_PROVIDER",
		"ALLOWED_HOST_MAPPING", "BIND_HOST", "PORT", "KAFKA_STATE_DIR",
	} {
		t.Setenv(name, "")
	}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

func TestAgentIsConfiguredByTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	setenv(t, "AGENT_NAME=pilot", "KAFKA_BOOTSTRAP_SERVERS=a:1,b:2", "ALLOWED_HOST_MAPPING=harbor:http://harbor:8000",
		"TOOL_CALLBACK_SECRET="+secret, "PORT=0", "KAFKA_STATE_DIR="+dir)
	a, listener, err := agentFrom(zap.NewNop())
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.True(t, listener.Addr().(*net.TCPAddr).IP.IsLoopback(), "anyone may chat")
	require.Equal(t, "pilot", a.name)
	require.Equal(t, []string{"a:1", "b:2"}, a.brokers)
	require.True(t, a.services.Known("harbor"))
	require.Equal(t, []string{secret}, a.secrets)
	require.Len(t, a.group("pilot-streams"), 1, filepath.Join(dir, "pilot-streams"))
}

func TestErrorNamesTheInvalidVariable(t *testing.T) {
	setenv(t, "ALLOWED_HOST_MAPPING=harbor", "THINK_TIMEOUT_MS=x", "REPLY_RETRY_MAX_MS=x", "KAFKA_ACKS=0",
		"TOOL_CALLBACK_SECRET=short")
	_, _, err := agentFrom(zap.NewNop())
	for _, name := range []string{
		"AGENT_NAME", "host mapping", "THINK_TIMEOUT_MS", "REPLY_RETRY_MAX_MS", "KAFKA_ACKS", "TOOL_CALLBACK_SECRET",
	} {
		require.ErrorContains(t, err, name)
	}

	setenv(t, "TARGET_CHAT_URL=somewhere", "TOKEN_TTL_SEC=0", "TOOL_CALLBACK_SECRET=short")
	_, err = dispatcherFrom(zap.NewNop())
	for _, name := range []string{
		"AGENT_NAME", "TARGET_CHAT_URL", "CALLBACK_SERVICE", "TOOL_CALLBACK_SECRET", "TOKEN_TTL_SEC", "KAFKA_ACKS",
	} {
		require.ErrorContains(t, err, name)
	}
	_, _, err = modelWorkerFrom(zap.NewNop())
	require.ErrorContains(t, err, "AGENT_NAME")
}

func TestDispatcherIsConfiguredByTheEnvironment(t *testing.T) {
	setenv(t, "AGENT_NAME=pilot", "TARGET_CHAT_URL=http://worker:8000/api/chat", "CALLBACK_SERVICE=pilot",
		"TOOL_CALLBACK_SECRET="+secret, "TOKEN_TTL_SEC=60")
	d, err := dispatcherFrom(zap.NewNop())
	require.NoError(t, err)
	require.Equal(t, time.Minute, d.tokenTTL)
}

func TestAPIKeySelectsARealModel(t *testing.T) {
	of := func(variables map[string]string) func(string) string {
		return func(n string) string { return variables[n] }
	}
	m, _, done, err := chosenModel(worker, of(nil))
	require.NoError(t, err)
	done()
	r, err := m.Think(t.Context(), step("user", `"1 + 1"`))
	require.NoError(t, err)
	require.Equal(t, "1 + 1 is 2", r.Blocks[0].Text)

	for _, c := range []struct {
		variables map[string]string
		want      any
	}{
		{map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_MODEL": "m", "OPENAI_API_KEY": "k"}, &anthropic.Model{}},
		{map[string]string{"OPENAI_API_KEY": "k"}, &openai.Model{}},
		{map[string]string{"GEMINI_API_KEY": "k"}, &gemini.Model{}},
		{map[string]string{"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "MODEL_PROVIDER": "gemini"}, &gemini.Model{}},
		{map[string]string{"ANTHROPIC_API_KEY": "k", "MODEL_PROVIDER": "script"}, think.Func(nil)},
	} {
		m, compactor, done, err := chosenModel(orchestrator, of(c.variables))
		require.NoError(t, err)
		done()
		require.NotNil(t, compactor)
		require.IsType(t, c.want, m)
	}

	_, _, _, err = chosenModel("pilot", of(nil))
	require.ErrorContains(t, err, "pilot")
	_, _, _, err = chosenModel(worker, of(map[string]string{"ANTHROPIC_API_KEY": "k", "INPUT_TOKEN_PRICE": "much"}))
	require.ErrorContains(t, err, "INPUT_TOKEN_PRICE")
	_, _, _, err = chosenModel(worker, of(map[string]string{"MODEL_PROVIDER": "openai"}))
	require.ErrorIs(t, err, think.ErrSettings, "without a key")
	_, _, _, err = chosenModel(worker, of(map[string]string{"MODEL_PROVIDER": "eliza"}))
	require.ErrorIs(t, err, errProvider)
}

func TestPricesOfTheEnvironmentReplaceTheProviders(t *testing.T) {
	for name, c := range map[string]struct {
		input, output string
		want          think.Prices
	}{
		"none": {"", "", nil},
		"half": {"1", "", nil},
		"both": {"3", "15", think.Prices{"m": {{Input: 3, CacheRead: 3, CacheWrite: 3, Output: 15}}}},
	} {
		got, err := pricesOf("m", func(n string) string {
			return map[string]string{"INPUT_TOKEN_PRICE": c.input, "OUTPUT_TOKEN_PRICE": c.output}[n]
		})
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestDefaultModelsHaveAPrice(t *testing.T) {
	prices := map[string]think.Prices{"anthropic": anthropic.Prices(), "openai": openai.Prices(), "gemini": gemini.Prices()}
	for _, p := range providers {
		require.Contains(t, prices[p.name], p.defaultModel)
	}
}

func TestQuestionIsPostedWithOrWithoutCurl(t *testing.T) {
	for _, path := range []string{os.Getenv("PATH"), ""} {
		t.Setenv("PATH", path)
		d := newDoor(t, http.StatusOK, http.StatusBadRequest)
		_, err := ask(t.Context(), d.URL, `{"session_id":"s"}`)
		require.NoError(t, err)
		_, err = ask(t.Context(), d.URL, `{"session_id":"s"}`)
		require.Error(t, err)
		require.Equal(t, []string{`{"session_id":"s"}`, `{"session_id":"s"}`}, d.bodies)
	}
}
