-- Local statuses beside the provider's, of payments that no finding about money explains.
create view compared_status as
select local_state.provider, local_state.account, local_state.mode, local_state.root_id, local_state.object_id,
    local_state.updated_at_us, local_state.changed_by, local_state.refunded_minor as found_refunded_minor,
    provider_status.refunded_minor as expected_refunded_minor, provider_status.at_us as said_at_us,
    local_state.status as found_state, status_rank.status_rank as found_rank,
    provider_status.expected_state, provider_status.expected_rank
from local_state
join status_rank on status_rank.status = local_state.status
join provider_status
    on provider_status.provider = local_state.provider and provider_status.account = local_state.account
    and provider_status.mode = local_state.mode and provider_status.root_id = local_state.root_id
left join explained_payment as explained
    on explained.provider = local_state.provider and explained.account = local_state.account
    and explained.mode = local_state.mode and explained.root_id = local_state.root_id
where explained.root_id is null;
