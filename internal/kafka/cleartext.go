package kafka

import "github.com/IBM/sarama"

// CleartextWarnings returns a sentence, with the consequence, if the connections of a configuration send a credential
// without encryption.
func CleartextWarnings(cfg *sarama.Config) []string {
	if !cfg.Net.SASL.Enable || cfg.Net.TLS.Enable {
		return nil
	}
	switch cfg.Net.SASL.Mechanism {
	case sarama.SASLTypePlaintext, "":
		return []string{"SASL PLAIN without TLS (security.protocol, KAFKA_SECURITY_PROTOCOL: SASL_PLAINTEXT): every connection sends the user name and the " +
			"password in clear text; anyone on the network path can read and use them"}
	case sarama.SASLTypeOAuth:
		return []string{"SASL OAUTHBEARER without TLS (security.protocol, KAFKA_SECURITY_PROTOCOL: SASL_PLAINTEXT): every connection sends the access token " +
			"in clear text; anyone on the network path can read it and use it until it expires"}
	default:
		return nil
	}
}
