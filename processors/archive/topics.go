package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// filling is what is set for a topic while it is filled: nothing is deleted, whatever its age and key; old and future timestamps and
// records of any size are accepted.
var filling = map[string]string{
	"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", "max.message.bytes": strconv.Itoa(mostBytes),
	"message.timestamp.type": "CreateTime", "message.timestamp.before.max.ms": strconv.Itoa(math.MaxInt64),
	"message.timestamp.after.max.ms": strconv.Itoa(math.MaxInt64),
}

// create creates a topic, unless somebody else does at the same time.
func (c *cluster) create(ctx context.Context, name string, partitions int32, replication int16, config map[string]string) error {
	if replication == 0 {
		replication = -1
	}
	settings := map[string]*string{}
	for key, value := range config {
		settings[key] = &value
	}
	return c.retry(ctx, "create the topic", name, func() error {
		answer, err := c.admin.CreateTopic(ctx, partitions, replication, settings, name)
		if err = errors.Join(err, answer.Err); errors.Is(err, kerr.TopicAlreadyExists) {
			return nil
		} else if errors.Is(err, kerr.InvalidConfig) && settings["message.timestamp.after.max.ms"] != nil {
			delete(settings, "message.timestamp.after.max.ms") // brokers before 3.6 have one setting, which accepts all
			delete(settings, "message.timestamp.before.max.ms")
			return kerr.RequestTimedOut // try again
		}
		return err
	})
}

// deleteTopic deletes a topic by its ID: one of the same name that was created since is not deleted, whichever process did that.
func (c *cluster) deleteTopic(ctx context.Context, name string, id topicID) error {
	if id == (topicID{}) {
		return fmt.Errorf("archive: the topic %s has no ID: the brokers are older than Kafka 2.8", name)
	}
	err := c.retry(ctx, "delete the topic", name, func() error {
		req := kmsg.NewPtrDeleteTopicsRequest()
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.TopicID = id
		req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.UnknownTopicID) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for { // a topic is marked first
		listed, err := c.topicsOf(ctx, name)
		if err != nil || listed[name].ID != id {
			delete(c.known, name)
			return err
		}
		if err := pause(ctx, firstWait); err != nil {
			return fmt.Errorf("archive: the topic %s is deleted and still visible: %w", name, err)
		}
	}
}

// ready makes an empty topic that can be filled, and returns its ID; that with the ID have may have records. A topic that somebody
// else has created meanwhile, as clients of brokers with auto.create.topics.enable do, is used if it is empty.
func (j *journal) ready(ctx context.Context, c *copying, have topicID) (topicID, error) {
	config := maps.Clone(c.topic.Config)
	maps.Copy(config, filling)
	replication := c.topic.Replication
	if j.Replication > 0 {
		replication = j.Replication
	}
	if least, err := strconv.Atoi(config["min.insync.replicas"]); err == nil && replication > 0 && least > int(replication) {
		return have, fmt.Errorf("%w: %s has min.insync.replicas=%d and would get %d replicas, so that nothing could be written to it: undo, "+
			"and begin again with a Replication of at least %d", ErrConfig, c.to, least, replication, least)
	}
	for begun := time.Now(); ; {
		listed, err := j.topicsOf(ctx, c.to)
		if err != nil {
			return have, err
		}
		d, exists := listed[c.to]
		exists = exists && len(d.Partitions) > 0
		switch {
		case exists && d.ID == have:
			return have, nil
		case exists && d.ID == c.gone: // a broker has not heard of the deletion
			if time.Since(begun) > patience {
				return have, fmt.Errorf("archive: the topic %s is deleted and still visible; run the same command again, which continues", c.to)
			}
			if err := pause(ctx, firstWait); err != nil {
				return have, fmt.Errorf("archive: the topic %s is deleted and still visible: %w", c.to, err)
			}
			continue
		case !exists:
			if err := j.create(ctx, c.to, c.parts, replication, config); err != nil {
				return have, err
			}
			if _, err := j.await(ctx, c.to); err != nil {
				return have, err
			}
			continue
		}
		found := []topic{{Name: c.to, Parts: make([]span, len(d.Partitions))}}
		if err := j.ends(ctx, found); err != nil {
			return have, err
		}
		fits := len(d.Partitions) == int(c.parts)
		if err := j.fenced(ctx, "use "+c.to, func() error { // otherwise it may be the topic of a process that has taken over
			for n, s := range found[0].Parts {
				if s.End > s.Start {
					return fmt.Errorf("%w: %s/%d has %d that this call has not written; stop the programs that write to it, save these "+
						"records if you need them, delete this topic alone, and run the same command again, which continues", ErrForeign, c.to, n, s.End-s.Start)
				}
			}
			if fits {
				return j.configure(ctx, c.to, config, nil)
			}
			j.log.Warn("another program has created the topic: it is empty and created again", zap.String("topic", c.to),
				zap.Int("partitions", len(d.Partitions)))
			return j.deleteTopic(ctx, c.to, d.ID)
		}); err != nil || fits {
			return d.ID, err
		}
	}
}

// finish sets what was set for the original of a topic, after it was filled.
func (c *cluster) finish(ctx context.Context, t topic) error {
	remove := []string{}
	for key := range filling {
		if _, set := t.Config[key]; !set {
			remove = append(remove, key)
		}
	}
	return c.configure(ctx, t.Name, t.Config, remove)
}

func (c *cluster) configure(ctx context.Context, name string, set map[string]string, remove []string) error {
	var changes []kadm.AlterConfig
	for key, value := range set {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value})
	}
	for _, key := range remove {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
	}
	return c.retry(ctx, "configure the topic", name, func() error {
		answers, err := c.admin.AlterTopicConfigs(ctx, changes, name)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if a.Err != nil {
				return fmt.Errorf("%w: %s", a.Err, a.ErrMessage)
			}
		}
		return nil
	})
}
