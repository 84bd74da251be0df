package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/processors/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, leaktest.Libraries()...) }

func TestServiceRunsTurnsWhileItServesRequests(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	defer broker.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, broker.Addrs(), "support") }()

	url := "http://" + listener.Addr().String()
	require.Eventually(t, func() bool { return status(url+"/healthz") == http.StatusOK }, time.Minute, 20*time.Millisecond)
	require.Equal(t, http.StatusOK, status(url+"/hello"))

	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics("support-enriched-message-input"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	message := &kgo.Record{Topic: "support-message-input", Key: []byte("s"), Value: []byte(`{"session_id":"s","role":"user"}`)}
	require.NoError(t, client.ProduceSync(ctx, message).FirstErr())
	require.Len(t, client.PollRecords(ctx, 1).Records(), 1)

	stop()
	require.NoError(t, <-served)
	require.Zero(t, status(url+"/hello"), "the server must be closed")
}

func TestServiceFailsIfItsProcessorCannotStart(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	require.Error(t, serve(t.Context(), listener, nil, "support"))
	require.Error(t, serve(t.Context(), listener, []string{"localhost:1"}, " "))
}

func status(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	return resp.StatusCode
}
