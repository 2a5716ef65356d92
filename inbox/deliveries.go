package inbox

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/internal/review"
)

// targetsListed is how many wake targets the list of deliveries has below it.
const targetsListed = 50

func (b *Inbox) deliveries(w http.ResponseWriter, r *http.Request, who reviewer) {
	status, after := r.URL.Query().Get("status"), r.URL.Query().Get("after")
	list, err := get[struct {
		Deliveries []delivery.DeliveryObject
		Next       string
	}](r.Context(), who.door, "/v1/deliveries", params("status", status, "after", after, "limit", strconv.Itoa(onPage)))
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	targets, err := get[struct {
		WakeTargets []delivery.Object `json:"wake_targets"`
		Next        string
	}](r.Context(), who.door, "/v1/wake-targets", params("limit", strconv.Itoa(targetsListed)))
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	l := view.DeliveryList{
		At: time.Now(), Deliveries: list.Deliveries, Listed: targets.WakeTargets, More: targets.Next != "", Targets: map[string]delivery.Object{},
		Statuses: statuses(status, delivery.Statuses(), view.DeliveryWord), Filtered: status != "", Room: view.NewRoom(),
	}
	for _, t := range l.Listed {
		l.Targets[t.TargetID] = t
	}
	for _, d := range l.Deliveries { // those of targets that were removed, or of older ones
		if _, known := l.Targets[d.TargetID]; !known {
			l.Targets[d.TargetID] = targetOf(r.Context(), who.door, d.TargetID)
		}
	}
	l.Names = b.names(r.Context(), aboutOf(l.Deliveries, view.AboutDelivery))
	l.Back, l.Next = around("/deliveries", after, list.Next, "status", status)
	b.show(w, r, http.StatusOK, view.DeliveriesPage(b.shell(r, who, view.Deliveries, "Deliveries"), l))
}

// targetOf is a wake target; one that cannot be read any more is shown by its id alone.
func targetOf(ctx context.Context, d Door, id string) delivery.Object {
	t, err := get[delivery.Object](ctx, d, "/v1/wake-targets/"+url.PathEscape(id), nil)
	if err != nil {
		return delivery.Object{TargetID: id}
	}
	return t
}

func (b *Inbox) delivery(w http.ResponseWriter, r *http.Request, who reviewer) {
	b.showDelivery(w, r, who, http.StatusOK, nil)
}

func (b *Inbox) showDelivery(w http.ResponseWriter, r *http.Request, who reviewer, status int, n *view.Notice) {
	path := "/v1/deliveries/" + url.PathEscape(r.PathValue("id"))
	d, err := get[delivery.DeliveryObject](r.Context(), who.door, path, nil)
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	tries, err := get[struct{ Attempts []delivery.AttemptObject }](r.Context(), who.door, path+"/attempts", nil)
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	about := view.AboutDelivery(d)
	v := view.Delivery{DeliveryObject: d, Name: b.names(r.Context(), []review.About{about}).Of(about), At: time.Now(), Target: targetOf(r.Context(), who.door, d.TargetID), Attempts: tries.Attempts, Room: view.NewRoom(), Notice: n}
	b.show(w, r, status, view.DeliveryPage(b.shell(r, who, view.Deliveries, "A delivery"), v))
}

// retryDelivery has a delivery tried again. What comes of it is seen on its page, to which
// it leads, so that to load that again sends nothing again.
func (b *Inbox) retryDelivery(w http.ResponseWriter, r *http.Request, who reviewer) {
	id := r.PathValue("id")
	err := do(r.Context(), who.door, http.MethodPost, "/v1/deliveries/"+url.PathEscape(id)+"/retry", nil, nil)
	if err == nil {
		http.Redirect(w, r, "/deliveries/"+url.PathEscape(id), http.StatusSeeOther)
		return
	}
	n := refusal(err)
	n.Title = "It is not tried again"
	b.showDelivery(w, r, who, problem.Status(err), &n)
}
