package processors

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/topics"
)

// Environment is the configuration that FromEnviron read.
type Environment struct {
	// Brokers are the addresses of KAFKA_BOOTSTRAP_SERVERS, or localhost:9092 if it is unset or blank.
	Brokers []string
	// Options are the options that the other variables set.
	Options []Option
	// Applied and Ignored are the sorted names of the KAFKA_ variables with and without effect, for logging. Unknown
	// variables are common (KAFKA_HEAP_OPTS) and are not an error. Do not log values: they may be secret.
	Applied, Ignored []string
}

// FromEnviron reads the KAFKA_ variables of an environment (os.Environ) as FlightDeck's services do. The name without
// KAFKA_, in lower case and with dots for underscores, is the name of a Kafka client property. KAFKA_STATE_DIR is the
// directory of LevelDB. KAFKA_REPLICATION_FACTOR is the replication factor of topics that are created; -1 is the
// broker's default. KAFKA_SASL_ and KAFKA_SSL_ variables require KAFKA_SECURITY_PROTOCOL. The error wraps ErrConfig and names
// every invalid variable, without values that may be secret.
func FromEnviron(environ []string) (Environment, error) {
	properties, names := kafkaVariables(environ)
	env := Environment{Brokers: []string{"localhost:9092"}}
	conf := kafka.Config()
	outcome, wrong := kafka.Apply(conf, properties, variableOf)
	for _, name := range outcome.Ignored {
		delete(properties, name)
	}
	for name := range names {
		if _, ok := properties[name]; ok {
			env.Applied = append(env.Applied, names[name])
		} else {
			env.Ignored = append(env.Ignored, names[name])
		}
	}
	slices.Sort(env.Applied)
	slices.Sort(env.Ignored)

	if list := splitList(properties[kafka.BootstrapServers]); len(list) > 0 {
		env.Brokers = list
	}
	for _, address := range env.Brokers {
		if err := checkAddress(address); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("KAFKA_BOOTSTRAP_SERVERS: %w", err))
		}
	}
	if dir, ok := properties[kafka.StateDir]; ok {
		env.Options = append(env.Options, WithStorage(LevelDB(dir)))
	}
	if text, ok := properties[kafka.ReplicationFactor]; ok {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 16)
		switch {
		case err != nil || n < -1 || n == 0:
			wrong = errors.Join(wrong, errors.New("KAFKA_REPLICATION_FACTOR: want at least 1, or -1"))
		case n > 0:
			env.Options = append(env.Options, WithReplication(int16(n)))
		}
	}
	if wrong != nil {
		return Environment{}, fmt.Errorf("%w: environment: %w", ErrConfig, wrong)
	}
	for _, taken := range []string{kafka.BootstrapServers, kafka.StateDir, kafka.ReplicationFactor} {
		delete(properties, taken)
	}
	if len(properties) > 0 {
		env.Options = append(env.Options, WithProperties(maps.Clone(properties)))
	}
	return env, nil
}

// variableOf returns the variable of a property.
func variableOf(property string) string {
	return prefix + strings.ReplaceAll(strings.ToUpper(property), ".", "_")
}

const prefix = "KAFKA_"

// kafkaVariables returns the values of the KAFKA_ variables by property, and the variables' names by property. The three
// variables that name the topics and the group of other services are not properties.
func kafkaVariables(environ []string) (properties, names map[string]string) {
	properties, names = map[string]string{}, map[string]string{}
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		name, ok := strings.CutPrefix(variable, prefix)
		if !ok || name == "" {
			continue
		}
		name = strings.ReplaceAll(strings.ToLower(name), "_", ".")
		names[name] = variable
		if !slices.Contains([]string{"input.topic", "output.topic", "consumer.group"}, name) {
			properties[name] = value
		}
	}
	return properties, names
}

var errAddress = errors.New("an address is not host:port")

// checkAddress rejects an address that is not host:port, because every attempt to connect to it would fail.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
		return errAddress
	}
	return nil
}

// checkBrokers refuses addresses to which no connection could be made.
func (o *options) checkBrokers(brokers []string) {
	if len(brokers) == 0 {
		o.refuse("brokers: the list is empty")
	}
	for _, address := range brokers {
		if err := checkAddress(address); err != nil {
			o.refuse("brokers: %q: %v, such as localhost:9092", address, err)
		}
	}
}

func splitList(list string) []string {
	var parts []string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// CatalogOptionsFromEnv returns the options of topics.For that the environment sets. The turn and the deliveries read the same
// variables in their ConfigFromEnv:
//
//	REPLY_TO_STATE_TTL_MS  topics.WithRouteTTL: the retention of the reply-to topic is the lifetime of a route
//	COMPACTION_TIMEOUT_MS  topics.WithCompaction, if it is set
//
// lookup is os.LookupEnv, or reads a map in a test. A blank variable counts as unset. An error wraps ErrConfig.
func CatalogOptionsFromEnv(lookup func(string) (string, bool)) ([]topics.CatalogOption, error) {
	return envoption.Options([]envoption.Variable[topics.CatalogOption]{
		envoption.RouteTTL(topics.WithRouteTTL),
		envoption.CompactionTimeout(func(time.Duration) topics.CatalogOption { return topics.WithCompaction() }),
	}, lookup, ErrConfig)
}
