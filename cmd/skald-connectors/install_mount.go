package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/mount"
)

// allClients is the word of install --mount for every client that is here.
const allClients = "all"

// checkMountFlags refuses a client that is not known before anything is downloaded.
func (a *app) checkMountFlags(act *activate.Activator, o *installOptions) error {
	if o.noMount && len(o.mount) > 0 {
		return usagef("--mount and --no-mount exclude each other")
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	return checkClients(act.Mounts, slices.DeleteFunc(slices.Clone(o.mount), func(id string) bool { return id == allClients }))
}

// mountInstalled is the last step of an install: into the clients that flags name, or
// that the person picks; without either it does nothing. The records follow.
func (a *app) mountInstalled(ctx context.Context, act *activate.Activator, o *installOptions, done []*record.Record) (*mountReport, error) {
	if o.adopted != nil && len(done) > 0 {
		return a.mountAdopted(ctx, act, o.adopted, done)
	}
	report := newMountReport()
	if o.noMount || len(done) == 0 || len(o.mount) == 0 && a.terminal() == nil || ctx.Err() != nil {
		return report, nil
	}
	names := make([]string, len(done))
	for i, rec := range done {
		names[i] = rec.Name
	}
	ids, err := a.clientsForInstall(ctx, act, o, names)
	if err != nil || len(ids) == 0 {
		return report, err
	}
	for i, rec := range done {
		for _, id := range ids {
			reqs, err := placesIn(act.Mounts, id, rec.Name, a.getenv(configDirVariable))
			if err != nil {
				if err := report.add(mount.Request{Name: rec.Name, Client: id}, mount.Result{}, err); err != nil {
					return report, err
				}
			}
			for _, req := range reqs {
				req.Create = slices.Contains(o.mount, id)
				res, err := act.Mount(ctx, req)
				if err := report.add(req, res, err); err != nil {
					return report, err
				}
			}
		}
		if fresh, err := act.Records().Read(rec.Name); err == nil {
			done[i] = fresh
		}
	}
	a.noteTemporary(act.Home, report)
	return report, nil
}

func (a *app) clientsForInstall(ctx context.Context, act *activate.Activator, o *installOptions, names []string) ([]string, error) {
	if len(o.mount) > 0 && !slices.Contains(o.mount, allClients) {
		return o.mount, nil
	}
	offered := a.offered(ctx, act, names, a.getenv(configDirVariable))
	if len(o.mount) > 0 {
		return offered.here, nil
	}
	ids, err := a.askClients(ctx, offered, strings.Join(names, ", ")+plainly(len(names), " is", " are")+" installed. Mount into:")
	if errors.Is(err, form.ErrAborted) && ctx.Err() == nil {
		return nil, nil // the connector is installed; only the offer was left
	}
	return ids, err
}

func plainly(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// nextText says where a connector is mounted now and what to do next.
func (a *app) nextText(rec *record.Record, mounts *mountReport) string {
	var b strings.Builder
	var restart []string
	row := func(label, format string, args ...any) {
		a.row(&b, label, fmt.Sprintf(format, args...))
	}
	for _, o := range mounts.Results {
		if o.Name != rec.Name {
			continue
		}
		row("mounted", "%s, in %s", clientName(o.Client), a.short(o.File))
		if o.Restart {
			restart = append(restart, clientName(o.Client))
		}
	}
	switch {
	case len(restart) > 0:
		row("next", "restart %s; then use it", strings.Join(restart, " and "))
	case b.Len() > 0:
		row("next", "use it in a new session of your client, or see %s info %s", program, rec.Name)
	default:
		row("next", "%s mount %s, or %s info %s", program, rec.Name, program, rec.Name)
	}
	return b.String()
}
