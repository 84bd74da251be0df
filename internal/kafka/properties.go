package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/IBM/sarama"
)

var (
	// ErrRefused is wrapped by the errors of properties that would break a guarantee or are not supported.
	ErrRefused = errors.New("refused")
	// ErrValue is wrapped by the errors of properties whose value cannot be parsed or is out of range.
	ErrValue = errors.New("bad value")
)

// Names of properties that have no field in a Sarama configuration. Apply accepts them; its caller applies them.
const (
	BootstrapServers  = "bootstrap.servers"
	GroupInstanceID   = "group.instance.id"
	ReplicationFactor = "replication.factor"
	StateDir          = "state.dir"
	// ProcessingGuarantee is at_least_once, exactly_once or exactly_once_v2, the word of Kafka Streams.
	ProcessingGuarantee = "processing.guarantee"
	// A blank value of this one has a meaning: it disables the verification of host names.
	endpointIdentification = "ssl.endpoint.identification.algorithm"
)

// Outcome is what Apply has to report about properties that it accepted.
type Outcome struct {
	// Ignored are the sorted names of the properties that have no effect: unknown, not supported, blank, or overridden by
	// another one.
	Ignored []string
	// Warnings are sentences about properties that weaken the security of the connections, each with its consequence.
	Warnings []string
}

// pass is one application of properties to a configuration. It collects the properties that depend on each other.
type pass struct {
	Outcome
	cfg        *sarama.Config
	properties map[string]string
	name       func(property string) string // how the user knows a property
	linger     time.Duration
	batch      int
	tls        tlsProperties
	sasl       saslProperties
	oauth      oauthProperties
}

// setter applies one property.
type setter func(p *pass, value string) error

// Apply sets properties, named as in Java's clients or librdkafka, in a configuration made by Config. Its error joins the
// errors of all refused and bad properties, each with its name, and contains no value that may be secret. named returns how
// the user knows a property, such as its environment variable; nil stands for the property's own name. Apply does not
// connect to anything.
func Apply(cfg *sarama.Config, properties map[string]string, named func(property string) string) (Outcome, error) {
	if named == nil {
		named = func(property string) string { return property }
	}
	setters := supported()
	p := &pass{cfg: cfg, properties: properties, name: named, batch: 16 << 10}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		value := properties[name]
		set, ok := setters[name]
		if !ok || (strings.TrimSpace(value) == "" && name != endpointIdentification) {
			p.Ignored = append(p.Ignored, name)
			continue
		}
		if err := set(p, value); err != nil {
			errs = append(errs, fmt.Errorf("kafka: %s: %w", p.name(name), err))
		}
	}
	p.flush()
	errs = append(errs, p.secure()...)
	if len(errs) == 0 {
		if err := cfg.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("kafka: %w", err))
		}
	}
	slices.Sort(p.Ignored)
	p.Ignored = slices.Compact(p.Ignored)
	return p.Outcome, errors.Join(errs...)
}

func (p *pass) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// given returns the names of those of the properties that are set, or of all if none is.
func (p *pass) given(properties ...string) string {
	var names []string
	for _, property := range properties {
		if strings.TrimSpace(p.properties[property]) != "" {
			names = append(names, p.name(property))
		}
	}
	if len(names) == 0 {
		for _, property := range properties {
			names = append(names, p.name(property))
		}
	}
	return strings.Join(names, ", ")
}

// flush maps linger.ms and batch.size. Without a linger Sarama sends at once and ignores the batch size: it batches the
// records that arrive while a request is in flight.
func (p *pass) flush() {
	if p.linger > 0 {
		p.cfg.Producer.Flush.Frequency, p.cfg.Producer.Flush.Bytes = p.linger, p.batch
		return
	}
	if _, ok := p.properties["batch.size"]; ok {
		p.Ignored = append(p.Ignored, "batch.size")
	}
}

// supported returns the setters of the supported properties.
func supported() map[string]setter {
	all := map[string]setter{}
	for _, group := range []map[string]setter{
		elsewhere(), connection(), producer(), consumer(), transport(), authentication(), oauth(),
	} {
		maps.Copy(all, group)
	}
	return all
}

func elsewhere() map[string]setter {
	taken := func(*pass, string) error { return nil }
	return map[string]setter{
		BootstrapServers: taken, ReplicationFactor: taken, StateDir: taken,
		GroupInstanceID:     instanceID,
		ProcessingGuarantee: only("there is no other guarantee", "at_least_once", "exactly_once", "exactly_once_v2"),
	}
}

// instanceID checks the characters here, because Sarama's error would contain the value.
func instanceID(p *pass, value string) error {
	const others = "._-"
	if strings.ContainsFunc(value, func(r rune) bool {
		return !strings.ContainsRune(others, r) && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}) {
		return fmt.Errorf("%w: want letters, digits, dots, underscores and hyphens", ErrValue)
	}
	p.cfg.Consumer.Group.InstanceId = value
	return nil
}

func connection() map[string]setter {
	return map[string]setter{
		"client.id":   text(func(p *pass) *string { return &p.cfg.ClientID }),
		"client.rack": text(func(p *pass) *string { return &p.cfg.RackID }),
		"client.dns.lookup": oneOf(map[string]func(*pass){
			"use_all_dns_ips": func(*pass) {},
			"resolve_canonical_bootstrap_servers_only": func(p *pass) {
				p.cfg.Net.ResolveCanonicalBootstrapServers = true
			},
		}),
		"metadata.max.age.ms": milliseconds(1, func(p *pass, d time.Duration) {
			p.cfg.Metadata.RefreshFrequency = d
		}),
		"default.api.timeout.ms": milliseconds(1, func(p *pass, d time.Duration) { p.cfg.Admin.Timeout = d }),
		"request.timeout.ms": milliseconds(1, func(p *pass, d time.Duration) {
			// A member waits for the answer to its join for as long as a rebalance may take.
			p.cfg.Net.ReadTimeout = max(d, RebalanceTimeout+10*time.Second)
			p.cfg.Net.WriteTimeout, p.cfg.Producer.Timeout = d, d
		}),
		"retry.backoff.ms": milliseconds(0, func(p *pass, d time.Duration) {
			p.cfg.Producer.Retry.Backoff, p.cfg.Producer.Retry.BackoffFunc = d, nil
			p.cfg.Metadata.Retry.Backoff, p.cfg.Consumer.Retry.Backoff = d, d
		}),
		"socket.connection.setup.timeout.ms": milliseconds(1, func(p *pass, d time.Duration) {
			p.cfg.Net.DialTimeout = d
		}),
		"allow.auto.create.topics": boolean(func(p *pass, on bool) { p.cfg.Metadata.AllowAutoTopicCreation = on }),
	}
}

func producer() map[string]setter {
	foreign := "keys are partitioned by murmur2, as Java does"
	compression := oneOf(map[string]func(*pass){
		"none":   func(p *pass) { p.cfg.Producer.Compression = sarama.CompressionNone },
		"gzip":   func(p *pass) { p.cfg.Producer.Compression = sarama.CompressionGZIP },
		"snappy": func(p *pass) { p.cfg.Producer.Compression = sarama.CompressionSnappy },
		"lz4":    func(p *pass) { p.cfg.Producer.Compression = sarama.CompressionLZ4 },
		"zstd":   func(p *pass) { p.cfg.Producer.Compression = sarama.CompressionZSTD },
	})
	size := number(1, func(p *pass, n int) { p.cfg.Producer.MaxMessageBytes = n })
	return map[string]setter{
		"acks":                    only("acknowledged records must outlive their leader", "all", "-1"),
		"enable.idempotence":      only("a retry would repeat and reorder records", "true"),
		"partitioner.class":       only(foreign, "org.apache.kafka.clients.producer.internals.DefaultPartitioner"),
		"partitioner":             only(foreign, "murmur2", "murmur2_random"),
		"partitioner.ignore.keys": only(foreign, "false"),
		"compression.type":        compression,
		"compression.codec":       compression,
		"linger.ms":               milliseconds(0, func(p *pass, d time.Duration) { p.linger = d }),
		"batch.size":              number(1, func(p *pass, n int) { p.batch = n }),
		"max.request.size":        size,
		"message.max.bytes":       size,
		"retries":                 number(1, func(p *pass, n int) { p.cfg.Producer.Retry.Max = n }),
	}
}

func consumer() map[string]setter {
	perPartition := number(1, func(p *pass, n int) { p.cfg.Consumer.Fetch.Default = int32(n) })
	wait := milliseconds(1, func(p *pass, d time.Duration) { p.cfg.Consumer.MaxWaitTime = d })
	return map[string]setter{
		"isolation.level": only("effects of aborted transactions would be handled", "read_committed"),
		"auto.offset.reset": oneOf(map[string]func(*pass){
			"earliest": func(p *pass) { p.cfg.Consumer.Offsets.Initial = sarama.OffsetOldest },
			"latest":   func(p *pass) { p.cfg.Consumer.Offsets.Initial = sarama.OffsetNewest },
		}),
		"session.timeout.ms": milliseconds(1, func(p *pass, d time.Duration) {
			p.cfg.Consumer.Group.Session.Timeout = d
		}),
		"heartbeat.interval.ms": milliseconds(1, func(p *pass, d time.Duration) {
			p.cfg.Consumer.Group.Heartbeat.Interval = d
		}),
		"max.poll.interval.ms": milliseconds(1, func(p *pass, d time.Duration) {
			// Handlers do not block, so a longer timeout has no use. One below the drain limit would cut the drain short.
			if d < minRebalanceTimeout || d > RebalanceTimeout {
				p.Ignored = append(p.Ignored, "max.poll.interval.ms")
				return
			}
			p.cfg.Consumer.Group.Rebalance.Timeout = d
		}),
		"fetch.min.bytes":           number(1, func(p *pass, n int) { p.cfg.Consumer.Fetch.Min = int32(n) }),
		"fetch.max.bytes":           number(1, func(p *pass, n int) { p.cfg.Consumer.Fetch.MaxBytes = int32(n) }),
		"max.partition.fetch.bytes": perPartition,
		"fetch.message.max.bytes":   perPartition,
		"fetch.max.wait.ms":         wait,
		"fetch.wait.max.ms":         wait,
	}
}
