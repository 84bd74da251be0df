package kafka

import (
	"fmt"
	"strings"

	"github.com/IBM/sarama"
)

// login is the content of a JAAS configuration of one of Kafka's login modules.
type login struct {
	mechanism string // PLAIN, SCRAM (for both of them) or OAUTHBEARER
	options   map[string]string
}

const scramLogin = "SCRAM"

// parseJAAS reads a configuration such as
//
//	org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";
//
// Its errors quote nothing of the configuration.
func parseJAAS(config string) (login, error) {
	words, err := jaasWords(config)
	if err != nil {
		return login{}, err
	}
	if len(words) < 2 {
		return login{}, fmt.Errorf("%w: want a login module, a flag, and options", ErrValue)
	}
	l := login{options: map[string]string{}}
	switch module := words[0]; {
	case strings.HasSuffix(module, ".PlainLoginModule"):
		l.mechanism = sarama.SASLTypePlaintext
	case strings.HasSuffix(module, ".ScramLoginModule"):
		l.mechanism = scramLogin
	case strings.HasSuffix(module, ".OAuthBearerLoginModule"):
		l.mechanism = sarama.SASLTypeOAuth
	default:
		return login{}, fmt.Errorf("%w: its login module is not supported, want PlainLoginModule, ScramLoginModule or "+
			"OAuthBearerLoginModule", ErrRefused)
	}
	for _, option := range words[2:] {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			return login{}, fmt.Errorf("%w: an option without a value", ErrValue)
		}
		l.options[name] = value
	}
	return l, nil
}

// jaasWords splits a configuration at blanks outside quotes, up to its semicolon, and removes the quotes.
func jaasWords(config string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		begun bool
		quote rune
	)
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	escaped := false
	for _, r := range config {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case quote != 0 && r == '\\':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case r == ';':
			end()
			return words, nil
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			end()
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	return nil, fmt.Errorf("%w: it does not end in a semicolon", ErrValue)
}
