package processors_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/turntable-streams/turntable/processors"
	foldgroup "github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// silent starts a listener that accepts connections and never answers, and returns its address.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var open []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			open = append(open, conn)
		}
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

// rejecting starts a broker that answers every SASL request with an error.
func rejecting(handshake, authentication sarama.KError) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		broker := sarama.NewMockBroker(t, 1)
		t.Cleanup(broker.Close)
		versions := sarama.NewMockApiVersionsResponse(t).SetApiKeys([]sarama.ApiVersionsResponseKey{
			{ApiKey: 3, MaxVersion: 9}, {ApiKey: 17, MaxVersion: 1}, {ApiKey: 18, MaxVersion: 3}, {ApiKey: 36, MaxVersion: 2},
		})
		broker.SetHandlerByMap(map[string]sarama.MockResponse{
			"ApiVersionsRequest": versions,
			"SaslHandshakeRequest": sarama.NewMockSaslHandshakeResponse(t).SetError(handshake).
				SetEnabledMechanisms([]string{sarama.SASLTypePlaintext}),
			"SaslAuthenticateRequest": sarama.NewMockSaslAuthenticateResponse(t).SetError(authentication),
		})
		return broker.Addr()
	}
}

// warnings returns a logger and a channel with the errors of its warnings.
func warnings() (*zap.Logger, <-chan string) {
	errs := make(chan string, 1000)
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	sink := zapcore.AddSync(writer(func(line []byte) { errs <- string(line) }))
	return zap.New(zapcore.NewCore(encoder, sink, zap.WarnLevel)), errs
}

type writer func(line []byte)

func (w writer) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}

// What a processor and a follower log at their first failure to connect. Sarama alone takes minutes to report a broker that
// accepts connections and does not answer.
func TestFirstWarningSaysWhyBrokersCannotBeReached(t *testing.T) {
	plain := map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "svc", "sasl.password": "hidden",
	}
	for name, c := range map[string]struct {
		address    func(*testing.T) string
		properties map[string]string
		want       []string
	}{
		"wrong mechanism": {
			rejecting(sarama.ErrUnsupportedSASLMechanism, 0), plain,
			[]string{"does not offer SASL PLAIN", "KAFKA_SASL_MECHANISM"},
		},
		"wrong password":  {rejecting(0, sarama.ErrSASLAuthenticationFailed), plain, []string{"rejected the credentials of SASL PLAIN", "KAFKA_SASL_PASSWORD"}},
		"silent":          {silent, nil, []string{"accepts connections and does not answer"}},
		"silent with TLS": {silent, map[string]string{"security.protocol": "SSL"}, []string{"accepts connections and does not answer"}},
	} {
		for _, part := range []string{"processor", "follower"} {
			t.Run(name+" "+part, func(t *testing.T) {
				t.Parallel()
				address := c.address(t)
				logger, logged := warnings()
				opts := []processors.Option{processors.WithProperties(c.properties), processors.WithLogger(logger)}
				run := follower(t, address, opts)
				if part == "processor" {
					run = foldProcessor(t, address, opts)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- run(ctx) }()
				line := firstFailure(t, logged)
				for _, want := range append(slices.Clone(c.want), address) {
					require.Contains(t, line, want)
				}
				require.NotContains(t, line, "hidden")
				stop()
				require.NoError(t, <-ended)
			})
		}
	}
}

// firstFailure returns the first warning about a failed connection. Without a limit, it takes minutes.
func firstFailure(t *testing.T, logged <-chan string) string {
	t.Helper()
	late := time.After(90 * time.Second)
	for {
		select {
		case line := <-logged:
			if !strings.Contains(line, "insecure") {
				return line
			}
		case <-late:
			t.Fatal("no warning")
		}
	}
}

func follower(t *testing.T, address string, opts []processors.Option) func(context.Context) error {
	f, err := processors.NewFollower([]string{address}, []string{"t"}, func(processors.Inbound) {}, opts...)
	require.NoError(t, err)
	return f.Run
}

func foldProcessor(t *testing.T, address string, opts []processors.Option) func(context.Context) error {
	graph, err := foldgroup.Graph("harbor", foldgroup.Config{})
	require.NoError(t, err)
	catalog, err := topics.For("harbor", topics.WithEvents())
	require.NoError(t, err)
	p, err := processors.New([]string{address}, graph, append(opts, processors.WithTopics(catalog))...)
	require.NoError(t, err)
	return p.Run
}
