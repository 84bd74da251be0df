package kafka

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// saslProperties are security.protocol and the sasl.* properties, which are applied together.
type saslProperties struct {
	protocol  string
	mechanism string
	user      string
	password  string
	jaas      string
}

func authentication() map[string]setter {
	mechanism := text(func(p *pass) *string { return &p.sasl.mechanism })
	return map[string]setter{
		"security.protocol": text(func(p *pass) *string { return &p.sasl.protocol }),
		"sasl.mechanism":    mechanism,
		"sasl.mechanisms":   mechanism,
		"sasl.username":     text(func(p *pass) *string { return &p.sasl.user }),
		"sasl.password":     text(func(p *pass) *string { return &p.sasl.password }),
		"sasl.jaas.config":  text(func(p *pass) *string { return &p.sasl.jaas }),
	}
}

// secure applies the security.protocol, ssl.* and sasl.* properties. Properties of a layer that the protocol does not use
// are ignored, as in Java.
func (p *pass) secure(properties map[string]string) []error {
	withTLS, withSASL, err := layers(p.sasl.protocol)
	if err != nil {
		return []error{err}
	}
	var errs []error
	if withTLS {
		config, err := p.tls.config()
		if err != nil {
			errs = append(errs, err)
		}
		p.cfg.Net.TLS.Enable, p.cfg.Net.TLS.Config = true, config
	}
	if withSASL {
		if err := p.sasl.apply(p.cfg); err != nil {
			errs = append(errs, err)
		}
	}
	for name := range maps.Keys(properties) {
		ssl := strings.HasPrefix(name, "ssl.") || name == "enable.ssl.certificate.verification"
		if ssl && !withTLS || strings.HasPrefix(name, "sasl.") && !withSASL {
			p.ignored = append(p.ignored, name)
		}
	}
	return errs
}

func layers(protocol string) (withTLS, withSASL bool, err error) {
	switch strings.ToUpper(protocol) {
	case "", "PLAINTEXT":
		return false, false, nil
	case "SSL":
		return true, false, nil
	case "SASL_PLAINTEXT":
		return false, true, nil
	case "SASL_SSL":
		return true, true, nil
	}
	return false, false, fmt.Errorf("kafka: security.protocol: %w: want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", ErrValue)
}

func (s saslProperties) apply(cfg *sarama.Config) error {
	if s.jaas != "" {
		login, err := parseJAAS(s.jaas)
		if err != nil {
			return fmt.Errorf("kafka: sasl.jaas.config: %w", err)
		}
		if s.mechanism == "" && login.plain {
			s.mechanism = sarama.SASLTypePlaintext
		}
		if login.plain != strings.EqualFold(s.mechanism, sarama.SASLTypePlaintext) {
			return fmt.Errorf("kafka: sasl.jaas.config: %w: its login module is not that of sasl.mechanism", ErrValue)
		}
		s.user, s.password = login.user, login.password
	}
	return SetSASL(cfg, s.mechanism, s.user, s.password)
}

// SetSASL enables SASL authentication by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. The mechanism's case does not matter. Its
// errors wrap ErrValue if an argument is missing, or ErrRefused for another mechanism.
func SetSASL(cfg *sarama.Config, mechanism, user, password string) error {
	supported := []string{sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512}
	mechanism = strings.ToUpper(mechanism)
	switch {
	case mechanism == "":
		return fmt.Errorf("kafka: sasl.mechanism: %w: missing, want one of %s", ErrValue, strings.Join(supported, ", "))
	case !slices.Contains(supported, mechanism):
		return fmt.Errorf("kafka: sasl.mechanism: %w: not supported, want one of %s", ErrRefused, strings.Join(supported, ", "))
	case user == "" || password == "":
		return fmt.Errorf("kafka: sasl.username, sasl.password: %w: missing", ErrValue)
	}
	sasl := &cfg.Net.SASL
	sasl.Enable, sasl.Mechanism, sasl.User, sasl.Password = true, sarama.SASLMechanism(mechanism), user, password
	switch mechanism {
	case sarama.SASLTypeSCRAMSHA256:
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA256} }
	case sarama.SASLTypeSCRAMSHA512:
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA512} }
	}
	return nil
}

// scramClient is one SCRAM conversation.
type scramClient struct {
	hash scram.HashGeneratorFcn
	conv *scram.ClientConversation
}

// Begin implements sarama.SCRAMClient.
func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	c.conv = client.NewConversation()
	return nil
}

// Step implements sarama.SCRAMClient.
func (c *scramClient) Step(challenge string) (string, error) { return c.conv.Step(challenge) }

// Done implements sarama.SCRAMClient.
func (c *scramClient) Done() bool { return c.conv.Done() }
