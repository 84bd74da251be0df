package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/IBM/sarama"
)

// Explain adds to the error of a connection to brokers their addresses, and what the cause is if the broker rejects the
// credentials, does not answer, or closes the connection, which it does if only one side expects TLS. Settings are named as
// properties and as variables of the environment. Other errors get only the addresses; nil is returned as it is.
func Explain(cfg *sarama.Config, err error, brokers ...string) error {
	if err == nil {
		return nil
	}
	if cause := causeOf(cfg, err); cause != "" {
		err = fmt.Errorf("%w (%s)", err, cause)
	}
	if len(brokers) > 0 {
		err = fmt.Errorf("brokers %s: %w", strings.Join(brokers, ","), err)
	}
	return err
}

func causeOf(cfg *sarama.Config, err error) string {
	const (
		protocol    = "security.protocol (KAFKA_SECURITY_PROTOCOL)"
		credentials = "sasl.username and sasl.password (KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD)"
		servers     = "bootstrap.servers (KAFKA_BOOTSTRAP_SERVERS)"
		mechanism   = "sasl.mechanism (KAFKA_SASL_MECHANISM)"
	)
	closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	var noTLS tls.RecordHeaderError
	var unknown *net.DNSError
	switch {
	case errors.Is(err, sarama.ErrSASLAuthenticationFailed):
		if mechanismOf(cfg) == sarama.SASLTypeOAuth {
			return "the broker rejected the access token of SASL OAUTHBEARER: check its issuer, audience and expiry"
		}
		return fmt.Sprintf("the broker rejected the credentials of SASL %s: check %s", mechanismOf(cfg), credentials)
	case errors.Is(err, sarama.ErrUnsupportedSASLMechanism):
		return fmt.Sprintf("the broker does not offer SASL %s: check %s", mechanismOf(cfg), mechanism)
	case cfg.Net.SASL.Enable && strings.HasSuffix(err.Error(), sarama.ErrOutOfBrokers.Error()):
		// Sarama omits most error codes of brokers, and this is the likely one.
		return fmt.Sprintf("no broker gives a reason, which is so if it does not offer SASL %s: check %s", mechanismOf(cfg), mechanism)
	case cfg.Net.TLS.Enable && (closed || errors.As(err, &noTLS)):
		return "the broker ended the TLS handshake; a plaintext listener does so: check the port, and whether " + protocol +
			" must be PLAINTEXT or SASL_PLAINTEXT"
	case closed && cfg.Net.SASL.Enable:
		return fmt.Sprintf("the broker closed the connection, which has SASL %s and no TLS; a TLS listener does so, one without "+
			"SASL, and some after wrong credentials: check the port, whether %s must be SASL_SSL or PLAINTEXT, and %s",
			mechanismOf(cfg), protocol, credentials)
	case closed:
		return "the broker closed the connection; a TLS listener does so: check the port, and whether " + protocol +
			" must be SSL or SASL_SSL"
	case errors.Is(err, sarama.ErrInvalidReplicationFactor):
		return "the cluster has fewer brokers than a topic would have replicas: start more brokers, or set processors.WithReplication, " +
			"1 for a single broker"
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed), errors.Is(err, sarama.ErrClusterAuthorizationFailed):
		return "the principal of this program may not do this: allow it (CREATE and DESCRIBE to create topics), or let another program " +
			"create the topics"
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return "the topic does not exist: check that a process with the agent's groups runs, which creates it, and the name of the agent"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: check the address in " + servers + ", and whether Kafka runs"
	case errors.As(err, &unknown):
		return "the name of the broker is not known here: check the address in " + servers
	case errors.Is(err, ErrSilent), readTimedOut(err):
		return "the address accepts connections and does not answer: check the host and the port; a proxy or firewall, a " +
			"broker that hangs, and a listener that is none of Kafka do so"
	}
	return ""
}

// mechanismOf returns the SASL mechanism of a configuration.
func mechanismOf(cfg *sarama.Config) string {
	if cfg.Net.SASL.Mechanism == "" {
		return sarama.SASLTypePlaintext
	}
	return string(cfg.Net.SASL.Mechanism)
}

// readTimedOut reports whether an established connection timed out.
func readTimedOut(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "read" && op.Timeout()
}
