package kafka

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

func TestConnectionErrorsNameBrokersMechanismAndSettings(t *testing.T) {
	refused := sarama.Wrap(sarama.ErrOutOfBrokers, sarama.ErrSASLAuthenticationFailed)
	for name, c := range map[string]struct {
		cause     error
		mechanism sarama.SASLMechanism
		tls       bool
		want      []string
	}{
		"wrong password":          {refused, "PLAIN", true, []string{"rejected the credentials of SASL PLAIN", "KAFKA_SASL_PASSWORD"}},
		"default mechanism":       {refused, "", true, []string{"SASL PLAIN"}},
		"wrong password of SCRAM": {refused, "SCRAM-SHA-512", false, []string{"SASL SCRAM-SHA-512", "sasl.username"}},
		"token":                   {refused, "OAUTHBEARER", true, []string{"rejected the access token"}},
		"mechanism": {
			sarama.ErrUnsupportedSASLMechanism, "SCRAM-SHA-256", true,
			[]string{"does not offer SASL SCRAM-SHA-256", "KAFKA_SASL_MECHANISM"},
		},
		"closed":          {io.EOF, "PLAIN", false, []string{"SASL PLAIN and no TLS", "KAFKA_SECURITY_PROTOCOL", "wrong credentials"}},
		"superfluous TLS": {io.EOF, "PLAIN", true, []string{"ended the TLS handshake", "KAFKA_SECURITY_PROTOCOL"}},
		"nothing listens": {
			sarama.Wrap(sarama.ErrOutOfBrokers, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), "PLAIN", true,
			[]string{"nothing listens there", "KAFKA_BOOTSTRAP_SERVERS"},
		},
		"unknown name": {
			sarama.Wrap(sarama.ErrOutOfBrokers, &net.DNSError{Err: "no such host", Name: "kafka"}), "PLAIN", true,
			[]string{"not known here", "KAFKA_BOOTSTRAP_SERVERS"},
		},
		"replication": {sarama.ErrInvalidReplicationFactor, "PLAIN", true, []string{"fewer brokers", "processors.WithReplication"}},
		"no topic":    {sarama.ErrUnknownTopicOrPartition, "PLAIN", true, []string{"does not exist", "the name of the agent"}},
		"no right":    {sarama.ErrTopicAuthorizationFailed, "PLAIN", true, []string{"may not do this", "CREATE"}},
		"silent":      {sarama.Wrap(sarama.ErrOutOfBrokers, ErrSilent), "PLAIN", false, []string{"does not answer"}},
	} {
		conf := Config()
		conf.Net.SASL.Enable, conf.Net.SASL.User, conf.Net.SASL.Password = true, "svc", "hidden"
		conf.Net.SASL.Mechanism, conf.Net.TLS.Enable = c.mechanism, c.tls
		err := Explain(conf, c.cause, "one:9092", "two:9092")
		require.ErrorIs(t, err, c.cause)
		for _, want := range append(c.want, "brokers one:9092,two:9092: ") {
			require.ErrorContains(t, err, want, name)
		}
		require.NotContains(t, err.Error(), "hidden")
	}
	other := errors.New("other")
	require.Equal(t, other, Explain(Config(), other))
	require.NoError(t, Explain(Config(), nil, "one:9092"))
}
