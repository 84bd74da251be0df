package processors

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// Environment is what FromEnviron finds.
type Environment struct {
	// Brokers are those of KAFKA_BOOTSTRAP_SERVERS; localhost:9092 where it is unset or blank.
	Brokers []string
	// Options are what the other variables say.
	Options []Option
	// Applied and Ignored are the names of the KAFKA_ variables with and without effect, to be logged: unknown ones are
	// common (KAFKA_HEAP_OPTS) and stop nothing. Values are not for logs.
	Applied, Ignored []string
}

// FromEnviron reads the KAFKA_ variables of an environment (os.Environ) as FlightDeck's services do: the prefix is
// dropped, the rest in lower case with dots for underscores is the name of a Kafka client property. KAFKA_STATE_DIR is
// the directory of LevelDB, KAFKA_REPLICATION_FACTOR that of the topics that are created. Its error names everything
// that is refused or cannot be understood, without values that may be secret.
func FromEnviron(environ []string) (Environment, error) {
	properties, names := kafkaVariables(environ)
	env := Environment{Brokers: []string{"localhost:9092"}}
	conf := kafka.Config()
	ignored, wrong := kafka.Apply(conf, properties)
	for _, name := range ignored {
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
			wrong = errors.Join(wrong, fmt.Errorf("KAFKA_REPLICATION_FACTOR: %q, want at least 1, or -1", text))
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

// kafkaVariables are the KAFKA_ variables by property, and the variables' own names by property. The three that name
// topics and group of other services are no properties.
func kafkaVariables(environ []string) (properties, names map[string]string) {
	const prefix = "KAFKA_"
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

// checkAddress refuses what no broker can be reached at: every attempt to connect would fail, for ever.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
		return fmt.Errorf("%q, want host:port", address)
	}
	return nil
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
