package kafka

import (
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

const (
	securityProtocol = "security.protocol"
	saslMechanism    = "sasl.mechanism"
	saslUsername     = "sasl.username"
	saslPassword     = "sasl.password"
	jaasConfig       = "sasl.jaas.config"
)

// saslProperties are security.protocol and the sasl.* properties, which are applied together.
type saslProperties struct {
	protocol  string
	mechanism string
	user      string
	password  string
	jaas      string
	options   map[string]string // of the JAAS configuration
}

func authentication() map[string]setter {
	mechanism := text(func(p *pass) *string { return &p.sasl.mechanism })
	return map[string]setter{
		securityProtocol:  text(func(p *pass) *string { return &p.sasl.protocol }),
		saslMechanism:     mechanism,
		"sasl.mechanisms": mechanism,
		saslUsername:      text(func(p *pass) *string { return &p.sasl.user }),
		saslPassword:      text(func(p *pass) *string { return &p.sasl.password }),
		jaasConfig:        text(func(p *pass) *string { return &p.sasl.jaas }),
	}
}

// secure applies the security.protocol, ssl.* and sasl.* properties. Without a protocol they are refused, because the
// connections would be plaintext. Properties of a layer that an explicit protocol does not use are ignored, as in Java.
func (p *pass) secure() []error {
	withTLS, withSASL, err := p.layers()
	if err != nil {
		return []error{err}
	}
	var errs []error
	if withTLS || withSASL {
		errs = p.checkFiles()
	}
	if withTLS && len(errs) == 0 {
		p.cfg.Net.TLS.Enable = true
		p.cfg.Net.TLS.Config, errs = p.tlsConfig()
	}
	if withSASL {
		errs = append(errs, p.authenticate()...)
	}
	var unused []string
	for name := range p.properties {
		ssl := strings.HasPrefix(name, "ssl.") || name == verification
		sasl := strings.HasPrefix(name, "sasl.") || name == httpsCAFile || name == httpsCAPEM
		if ssl && !withTLS || sasl && !withSASL {
			unused = append(unused, name)
		}
	}
	if err := p.missingProtocol(unused); err != nil {
		return append(errs, err)
	}
	p.Ignored = append(p.Ignored, unused...)
	return errs
}

// missingProtocol returns an error if properties would have an effect with a security.protocol, and there is none. Other
// names do not count: Kubernetes sets KAFKA_SSL_PORT for a service named kafka-ssl.
func (p *pass) missingProtocol(unused []string) error {
	if strings.TrimSpace(p.sasl.protocol) != "" {
		return nil
	}
	setters := supported()
	var names []string
	for _, name := range unused {
		if _, ok := setters[name]; ok && strings.TrimSpace(p.properties[name]) != "" {
			names = append(names, p.name(name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("kafka: %s: %w: missing, so connections would be plaintext and %s without effect; want SSL, "+
		"SASL_PLAINTEXT or SASL_SSL, or PLAINTEXT if that is intended", p.name(securityProtocol), ErrValue, strings.Join(names, ", "))
}

func (p *pass) layers() (withTLS, withSASL bool, err error) {
	switch strings.ToUpper(strings.TrimSpace(p.sasl.protocol)) {
	case "", "PLAINTEXT":
		return false, false, nil
	case "SSL":
		return true, false, nil
	case "SASL_PLAINTEXT":
		return false, true, nil
	case "SASL_SSL":
		return true, true, nil
	}
	return false, false, fmt.Errorf("kafka: %s: %w: want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
		p.name(securityProtocol), ErrValue)
}

// authenticate applies the sasl.* properties.
func (p *pass) authenticate() []error {
	s := p.sasl
	if s.jaas != "" {
		login, err := parseJAAS(s.jaas)
		if err != nil {
			return []error{fmt.Errorf("kafka: %s: %w", p.name(jaasConfig), err)}
		}
		if s.mechanism == "" && login.mechanism != scramLogin {
			s.mechanism = login.mechanism
		}
		if !login.serves(s.mechanism) {
			return []error{
				fmt.Errorf("kafka: %s: %w: its login module is not that of %s", p.name(jaasConfig), ErrValue, p.name(saslMechanism)),
			}
		}
		s.user, s.password, s.options = login.options["username"], login.options["password"], login.options
	}
	if strings.EqualFold(strings.TrimSpace(s.mechanism), sarama.SASLTypeOAuth) {
		return p.oauthbearer(s.options)
	}
	for name := range oauth() {
		if _, ok := p.properties[name]; ok {
			p.Ignored = append(p.Ignored, name)
		}
	}
	if err := setSASL(p.cfg, s.mechanism, s.user, s.password, p.name); err != nil {
		return []error{err}
	}
	return nil
}

// serves reports whether a mechanism takes its credentials from the login module.
func (l login) serves(mechanism string) bool {
	mechanism = strings.ToUpper(strings.TrimSpace(mechanism))
	return mechanism == l.mechanism || l.mechanism == scramLogin && strings.HasPrefix(mechanism, scramLogin+"-")
}

// SetSASL enables SASL authentication by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. The mechanism's case does not matter.
// OAUTHBEARER needs the properties of Apply. Its errors wrap ErrValue if an argument is missing, or ErrRefused for another mechanism.
func SetSASL(cfg *sarama.Config, mechanism, user, password string) error {
	return setSASL(cfg, mechanism, user, password, func(property string) string { return property })
}

func setSASL(cfg *sarama.Config, mechanism, user, password string, name func(property string) string) error {
	supported := []string{
		sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512, sarama.SASLTypeOAuth,
	}
	mechanism = strings.ToUpper(strings.TrimSpace(mechanism))
	switch {
	case mechanism == "":
		return fmt.Errorf("kafka: %s: %w: missing, want one of %s", name(saslMechanism), ErrValue, strings.Join(supported, ", "))
	case !slices.Contains(supported, mechanism):
		return fmt.Errorf("kafka: %s: %w: not supported, want one of %s", name(saslMechanism), ErrRefused, strings.Join(supported, ", "))
	case mechanism == sarama.SASLTypeOAuth:
		return fmt.Errorf("kafka: %s: %w: OAUTHBEARER takes no user and password; set the property %s",
			name(saslMechanism), ErrRefused, name(tokenEndpoint))
	case user == "" || password == "":
		return fmt.Errorf("kafka: %s, %s: %w: missing", name(saslUsername), name(saslPassword), ErrValue)
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
