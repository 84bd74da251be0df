package share

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Support says whether a share group can be used, and why or why not.
type Support struct {
	Usable bool
	Reason string
}

// The versions of requests from which brokers renew locks and limit the number of acquired records exactly.
var needed = map[kmsg.Key]int16{
	kmsg.ShareGroupHeartbeat: 1,
	kmsg.ShareFetch:          2,
	kmsg.ShareAcknowledge:    2,
}

// Probe asks the brokers whether they offer share groups with renewable locks, and whether the group can be one. It returns
// an error if they do not answer.
func Probe(ctx context.Context, client *kgo.Client, group string) (Support, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "turntable", "1"
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return Support{}, fmt.Errorf("worker: versions of the brokers: %w", err)
	}
	if reason := missing(resp); reason != "" {
		return Support{Reason: reason}, nil
	}
	used, err := committed(ctx, client, group)
	switch {
	case err != nil:
		return Support{}, fmt.Errorf("worker: offsets of group %s: %w", group, err)
	case used:
		return Support{Reason: "the group has committed offsets of a consumer group, which a share group would not continue from"}, nil
	default:
		return Support{true, "the brokers offer share groups"}, nil
	}
}

// missing says what the brokers lack; empty if nothing.
func missing(resp *kmsg.ApiVersionsResponse) string {
	offered := map[kmsg.Key]int16{}
	for _, k := range resp.ApiKeys {
		offered[kmsg.Key(k.ApiKey)] = k.MaxVersion
	}
	for key, version := range needed {
		if have, ok := offered[key]; !ok || have < version {
			return "the brokers do not offer share groups with renewable locks (Kafka 4.2)"
		}
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "share.version" && f.MaxVersionLevel >= 1 {
			return ""
		}
	}
	return "share groups are disabled in the cluster (feature share.version)"
}

// committed reports whether a consumer group with this name has committed offsets.
func committed(ctx context.Context, client *kgo.Client, group string) (bool, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	req.Group, req.Groups = group, append(req.Groups, g)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return false, err
	}
	for _, g := range resp.Groups {
		switch err := kerr.ErrorForCode(g.ErrorCode); {
		case errors.Is(err, kerr.GroupIDNotFound): // it is a share group, or there is none
		case err != nil:
			return false, err
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if p.Offset >= 0 {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
