package processors_test

import (
	"crypto/tls"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

var brokers = []string{"localhost:9092"}

func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	_, err = processors.New([]string{" "}, graphOf(nil, codec.String()),
		processors.WithTick(0), processors.WithCommitInterval(0), processors.WithClock(nil), processors.WithLogger(nil), processors.WithTLS(nil),
		processors.WithStorage(processors.LevelDB("")), processors.WithPartitions(0), processors.WithReplication(0),
		processors.WithDeadLetters(""), processors.WithMaxRecordBytes(1), processors.WithInstance(""),
		processors.WithHandlerAttempts(0), processors.WithRestartLimit(0), processors.WithRestartBackoff(time.Second, time.Millisecond),
		processors.WithSASL("sasl.mechanism: refused", "ann", "hunter2"), processors.WithProperties(map[string]string{"acks": "1"}),
		processors.WithTopics(catalog))
	require.ErrorIs(t, err, processors.ErrConfig)
	for _, name := range []string{
		"brokers", "WithTick", "WithCommitInterval", "WithClock", "WithLogger", "WithTLS", "WithStorage", "WithPartitions", "WithReplication",
		"WithDeadLetters", "WithMaxRecordBytes", "WithInstance", "WithHandlerAttempts", "WithRestartLimit", "WithRestartBackoff", "sasl.mechanism: refused",
		"acks", "WithTopics",
	} {
		require.ErrorContains(t, err, name)
	}
	require.NotContains(t, err.Error(), "hunter2")
}

func TestExactlyOnceNeedsAnInstance(t *testing.T) {
	exactly := map[string]string{"processing.guarantee": "exactly_once_v2"}
	for name, opts := range map[string][]processors.Option{
		"option":   {processors.WithGuarantee(processors.ExactlyOnce)},
		"property": {processors.WithProperties(exactly)},
	} {
		_, err := processors.New(brokers, graphOf(nil, codec.String()), opts...)
		require.ErrorContains(t, err, "needs an instance id", name)
		_, err = processors.New(brokers, graphOf(nil, codec.String()), append(opts, processors.WithInstance("i-1"))...)
		require.NoError(t, err, name)
	}
	_, err := processors.New(brokers, graphOf(nil, codec.String()),
		processors.WithProperties(exactly), processors.WithGuarantee(processors.AtLeastOnce))
	require.NoError(t, err, "the option wins")
	_, err = processors.New(brokers, graphOf(nil, codec.String()), processors.WithGuarantee("at_most_once"))
	require.ErrorContains(t, err, `"at_most_once", want "at_least_once" or "exactly_once"`)
}

func TestNewTakesWhatIsRight(t *testing.T) {
	_, err := processors.New(brokers, graphOf(nil, codec.String()),
		processors.WithTLS(&tls.Config{MinVersion: tls.VersionTLS13}),
		processors.WithSASL("SCRAM-SHA-512", "ann", "hunter2"),
		processors.WithStorage(processors.LevelDB(t.TempDir())), processors.WithInstance("floor-1"),
		processors.WithKeepMembership(), processors.WithReplication(3), processors.WithRestartLimit(-1), processors.WithHandlerAttempts(-1),
		processors.WithProperties(map[string]string{"compression.type": "lz4"}))
	require.NoError(t, err)
}

func TestInstanceIDsThatKafkaRefusesAreRefusedByNew(t *testing.T) {
	_, err := processors.New(brokers, graphOf(nil, codec.String()), processors.WithInstance("a b"))
	require.ErrorContains(t, err, "instance id")
}

func TestGraphsThatGoWrongAtTheFirstRecordAreRefused(t *testing.T) {
	input := processors.Input(asks, func(*processors.Context, codec.Decoded[asked]) error { return nil })
	own := func(more ...goka.Edge) *goka.GroupGraph {
		return goka.DefineGroup(group, append(processors.Edges(group, input), more...)...)
	}
	letters := func(topic string) []processors.Option {
		return []processors.Option{processors.WithDeadLetters(topic)}
	}
	for name, tc := range map[string]struct {
		graph *goka.GroupGraph
		opts  []processors.Option
		want  string
	}{
		"none":            {nil, nil, "graph: nil"},
		"no input":        {goka.DefineGroup(group), nil, "no input stream"},
		"no group":        {goka.DefineGroup("", goka.Input("asks", codec.String(), nil)), nil, "empty group name"},
		"two codecs":      {own(goka.Output("asks", codec.String())), nil, "different codecs"},
		"letters: input":  {own(), letters("asks"), "is another edge"},
		"letters: table":  {own(goka.Persist(codec.String())), letters("floor-table"), "is another edge"},
		"letters: loop":   {own(), letters("floor-loop"), "is another edge"},
		"letters: output": {own(goka.Output("answers", codec.Bytes())), letters("answers"), "is another edge"},
		"letters: timer":  {own(), letters("floor-timer"), "timer"},
		"timer":           {own(goka.Output("floor-timer", codec.Bytes())), nil, "timer"},
	} {
		_, err := processors.New(brokers, tc.graph, tc.opts...)
		require.ErrorIs(t, err, processors.ErrConfig, name)
		require.ErrorContains(t, err, tc.want, name)
	}
	for name, graph := range map[string]*goka.GroupGraph{
		"plain Goka":  goka.DefineGroup(group, goka.Input("asks", codec.String(), func(goka.Context, any) {})),
		"mixed":       own(goka.Input("more", codec.String(), func(goka.Context, any) {})),
		"two letters": own(processors.DeadLetters(group)),
	} {
		_, err := processors.New(brokers, graph)
		require.NoError(t, err, name)
	}
}

func TestEnvironmentBecomesOptions(t *testing.T) {
	dir := t.TempDir()
	env, err := processors.FromEnviron([]string{
		"PATH=/bin", "kafka_acks=1", "KAFKA_=x",
		"KAFKA_BOOTSTRAP_SERVERS= a:9092, b:9092,", "KAFKA_STATE_DIR=" + dir, "KAFKA_REPLICATION_FACTOR=3",
		"KAFKA_COMPRESSION_TYPE=zstd", "KAFKA_SECURITY_PROTOCOL=SASL_PLAINTEXT", "KAFKA_SASL_MECHANISM=PLAIN",
		`KAFKA_SASL_JAAS_CONFIG=org.apache.kafka.common.security.plain.PlainLoginModule required ` +
			`username="a=b" password="c";`,
		"KAFKA_GROUP_INSTANCE_ID=i-1", "KAFKA_HEAP_OPTS=-Xmx1g", "KAFKA_CLIENT_ID=", "KAFKA_INPUT_TOPIC=x",
	})
	require.NoError(t, err)
	require.Equal(t, []string{"a:9092", "b:9092"}, env.Brokers)
	require.Equal(t, []string{"KAFKA_CLIENT_ID", "KAFKA_HEAP_OPTS", "KAFKA_INPUT_TOPIC"}, env.Ignored)
	require.Equal(t, []string{
		"KAFKA_BOOTSTRAP_SERVERS", "KAFKA_COMPRESSION_TYPE", "KAFKA_GROUP_INSTANCE_ID", "KAFKA_REPLICATION_FACTOR",
		"KAFKA_SASL_JAAS_CONFIG", "KAFKA_SASL_MECHANISM", "KAFKA_SECURITY_PROTOCOL", "KAFKA_STATE_DIR",
	}, env.Applied)
	_, err = processors.New(env.Brokers, graphOf(nil, codec.String()), env.Options...)
	require.NoError(t, err)
}

func TestEmptyEnvironmentMeansALocalBroker(t *testing.T) {
	for _, environ := range [][]string{nil, {"KAFKA_BOOTSTRAP_SERVERS=  "}} {
		env, err := processors.FromEnviron(environ)
		require.NoError(t, err)
		require.Equal(t, []string{"localhost:9092"}, env.Brokers)
		require.Empty(t, env.Options)
	}
}

func TestEnvironmentThatBreaksAPromiseIsRefused(t *testing.T) {
	for _, entry := range []string{
		"KAFKA_ACKS=1", "KAFKA_PARTITIONER_CLASS=com.example.Mine", "KAFKA_ENABLE_IDEMPOTENCE=false",
		"KAFKA_ISOLATION_LEVEL=read_uncommitted", "KAFKA_REPLICATION_FACTOR=0", "KAFKA_REPLICATION_FACTOR=many",
		"KAFKA_BOOTSTRAP_SERVERS=kafka", "KAFKA_BOOTSTRAP_SERVERS=kafka:9092,kafka:", "KAFKA_BOOTSTRAP_SERVERS=:9092",
		"KAFKA_BOOTSTRAP_SERVERS=http://kafka:9092", "KAFKA_BOOTSTRAP_SERVERS=kafka:99999",
	} {
		_, err := processors.FromEnviron([]string{entry})
		require.ErrorIs(t, err, processors.ErrConfig, entry)
		_, value, _ := strings.Cut(entry, "=")
		require.NotContains(t, err.Error(), strconv.Quote(value), "it could be a secret in the wrong variable")
	}
	_, err := processors.FromEnviron([]string{
		"KAFKA_SECURITY_PROTOCOL=SASL_SSL", "KAFKA_SASL_MECHANISM=GSSAPI", "KAFKA_SASL_PASSWORD=hunter2",
	})
	require.ErrorContains(t, err, "KAFKA_SASL_MECHANISM: refused: not supported")
	require.False(t, strings.Contains(err.Error(), "hunter2"))
	for _, right := range []string{"KAFKA_REPLICATION_FACTOR=-1", "KAFKA_BOOTSTRAP_SERVERS=[::1]:9092, 10.0.0.1:9093"} {
		_, err = processors.FromEnviron([]string{right})
		require.NoError(t, err, right)
	}
}

func TestEnvironmentIsRefusedForAllThatIsWrongAtOnce(t *testing.T) {
	_, err := processors.FromEnviron([]string{
		"KAFKA_ACKS=1", "KAFKA_LINGER_MS=soon", "KAFKA_REPLICATION_FACTOR=0", "KAFKA_BOOTSTRAP_SERVERS=kafka",
	})
	for _, name := range []string{"KAFKA_ACKS", "KAFKA_LINGER_MS", "KAFKA_REPLICATION_FACTOR", "KAFKA_BOOTSTRAP_SERVERS"} {
		require.ErrorContains(t, err, name)
	}
}

func TestWeakenedConnectionsAreLoggedForEveryClient(t *testing.T) {
	opts := []processors.Option{processors.WithProperties(map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "hunter2",
	})}
	unverified := processors.WithProperties(map[string]string{
		"security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "",
	})
	for name, start := range map[string]func(...processors.Option) error{
		"New": func(opts ...processors.Option) error {
			_, err := processors.New(brokers, graphOf(nil, codec.String()), opts...)
			return err
		},
		"NewPublisher": func(opts ...processors.Option) error {
			_, err := processors.NewPublisher(brokers, opts...)
			return err
		},
		"NewFollower": func(opts ...processors.Option) error {
			_, err := processors.NewFollower(brokers, []string{"t"}, func(processors.Inbound) {}, opts...)
			return err
		},
		"ClientConfig": func(opts ...processors.Option) error {
			_, _, err := processors.ClientConfig(brokers, opts...)
			return err
		},
	} {
		warnings := func(more ...processors.Option) string {
			core, logs := observer.New(zap.WarnLevel)
			require.NoError(t, start(slices.Concat(opts, []processors.Option{processors.WithLogger(zap.New(core))}, more)...), name)
			var text strings.Builder
			for _, entry := range logs.All() {
				text.WriteString(entry.Message + "\n")
			}
			require.NotContains(t, text.String(), "hunter2", name)
			return text.String()
		}
		require.Contains(t, warnings(), "password in clear text", name)
		require.Contains(t, warnings(unverified), "host names of brokers are not verified", name)
		require.NotContains(t, warnings(unverified), "clear text", name)
		require.Empty(t, warnings(unverified, processors.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12})), name)
	}
}

func TestCredentialsWithoutAProtocolAreRefused(t *testing.T) {
	_, err := processors.FromEnviron([]string{"KAFKA_SASL_USERNAME=ann", "KAFKA_SASL_PASSWORD=hunter2"})
	require.ErrorIs(t, err, processors.ErrConfig)
	require.ErrorContains(t, err, "KAFKA_SECURITY_PROTOCOL: bad value: missing")
	require.ErrorContains(t, err, "KAFKA_SASL_PASSWORD, KAFKA_SASL_USERNAME without effect")
	require.NotContains(t, err.Error(), "hunter2")
}
