package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/token"
)

// The roles are configured by environment variables, with the names of FlightDeck's components. Secrets do not belong on a
// command line.

// setting returns the value of a required variable. If it is blank, setting appends an error.
func setting(name string, errs *[]error) string {
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		*errs = append(*errs, fmt.Errorf("%s is not set", name))
	}
	return text
}

// agentFrom returns the agent that the environment configures, and its listener.
func agentFrom(logger *zap.Logger) (agent, net.Listener, error) {
	var errs []error
	name := setting("AGENT_NAME", &errs)
	kafka, err := processors.FromEnviron(os.Environ())
	errs = append(errs, err)
	turns, err := turn.ConfigFromEnv(os.LookupEnv)
	errs = append(errs, err)
	deliveries, err := delivery.ConfigFromEnv(os.LookupEnv)
	errs = append(errs, err)
	services, err := sink.ParseServices(os.Getenv("ALLOWED_HOST_MAPPING"))
	errs = append(errs, err)
	callbackSecret, err := secretFrom("TOOL_CALLBACK_SECRET")
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return agent{}, nil, err
	}
	listener, err := listen()
	if err != nil {
		return agent{}, nil, err
	}
	return agent{
		name: name, brokers: kafka.Brokers, services: services, secrets: []string{callbackSecret},
		logger: logger, client: kafka.Options, group: storage, turn: turns, delivery: deliveries,
	}, listener, nil
}

// secretFrom returns a secret of callback tokens, or an empty text if the variable is not set.
func secretFrom(variable string) (string, error) {
	secret := os.Getenv(variable)
	if _, err := token.NewVerifier(secret); err != nil {
		return "", fmt.Errorf("%s has fewer than %d bytes (openssl rand -base64 32)", variable, token.MinSecret)
	}
	return secret, nil
}

// storage gives every group its own directory below KAFKA_STATE_DIR. Without that variable it returns no options.
func storage(group goka.Group) []processors.Option {
	dir := strings.TrimSpace(os.Getenv("KAFKA_STATE_DIR"))
	if dir == "" {
		return nil
	}
	return []processors.Option{processors.WithStorage(processors.LevelDB(filepath.Join(dir, string(group))))}
}

// listen opens the agent's port: PORT (default 8000; 0 is any free port) on BIND_HOST (default loopback, because the chat
// door has no authentication).
func listen() (net.Listener, error) {
	host, port := os.Getenv("BIND_HOST"), os.Getenv("PORT")
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "8000"
	}
	return httpserver.Listen(net.JoinHostPort(host, port))
}

// dispatcherFrom returns the dispatcher that the environment configures.
func dispatcherFrom(logger *zap.Logger) (dispatcher, error) {
	var errs []error
	d := dispatcher{
		agent: setting("AGENT_NAME", &errs), chat: setting("TARGET_CHAT_URL", &errs),
		callback: setting("CALLBACK_SERVICE", &errs), secret: setting("TOOL_CALLBACK_SECRET", &errs),
		tokenTTL: 24 * time.Hour, logger: logger,
	}
	_, err := secretFrom("TOOL_CALLBACK_SECRET")
	errs = append(errs, err)
	u, err := url.Parse(d.chat)
	if d.chat != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		errs = append(errs, errors.New("TARGET_CHAT_URL is not http(s)://host[:port]/path"))
	}
	if text := strings.TrimSpace(os.Getenv("TOKEN_TTL_SEC")); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds < 1 {
			errs = append(errs, fmt.Errorf("TOKEN_TTL_SEC=%q, want a whole number of seconds", text))
		}
		d.tokenTTL = time.Duration(seconds) * time.Second
	}
	kafka, err := processors.FromEnviron(os.Environ())
	errs = append(errs, err)
	d.brokers, d.client = kafka.Brokers, kafka.Options
	return d, errors.Join(errs...)
}

// modelWorkerFrom returns the model worker that the environment configures. The caller calls closeModel after its end.
func modelWorkerFrom(logger *zap.Logger) (m modelWorker, closeModel func(), err error) {
	var errs []error
	m = modelWorker{agent: setting("AGENT_NAME", &errs), logger: logger}
	kafka, err := processors.FromEnviron(os.Environ())
	if err := errors.Join(append(errs, err)...); err != nil {
		return m, nil, err
	}
	m.brokers, m.client = kafka.Brokers, kafka.Options
	m.model, m.compactor, closeModel, err = chosenModel(m.agent, os.Getenv)
	return m, closeModel, err
}
