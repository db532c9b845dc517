-- Local statuses that are behind the provider's, and what became of their event: `delivery` is the outcome in
-- `status_delivery`, or `none`.
--
-- Behind is a lower rank, or a status left over from before the payment's way back: the money of a dispute was
-- returned; or a refund that an event announces moved no money (it failed), where no dispute has a say. (The
-- engine also knows a failed refund from the provider's list of refunds, which is not among the relations.)
-- A manual change that is newer than the provider's word is a person's, and an attempt that the books gave up
-- early is no disagreement.
create view lagging_status as
with
disputed as (
    select provider, account, mode, root_id,
        max(case when kind = 'dispute_reinstated' then 1 else 0 end) as is_returned
    from provider_effect
    where kind in ('dispute_withdrawn', 'dispute_reinstated')
    group by provider, account, mode, root_id
),
moved as (
    select distinct provider, account, mode, root_id, object_id
    from provider_effect
),
failed_refund as (
    select distinct said.provider, said.account, said.mode, said.root_id
    from provider_event as said
    left join moved using (provider, account, mode, root_id, object_id)
    where said.tracks = 'refund' and said.object_id <> said.root_id and moved.object_id is null
)
select compared_status.*, coalesce(status_delivery.outcome, 'none') as delivery
from compared_status
left join disputed using (provider, account, mode, root_id)
left join failed_refund using (provider, account, mode, root_id)
left join status_delivery using (provider, account, mode, root_id)
where not (compared_status.changed_by = 'operator' and compared_status.updated_at_us > compared_status.said_at_us)
    and (
        compared_status.found_rank < compared_status.expected_rank
        or (
            compared_status.found_rank > compared_status.expected_rank
            and (
                (compared_status.found_state = 'disputed' and disputed.is_returned = 1)
                or (
                    compared_status.found_state in ('partially_refunded', 'refunded')
                    and failed_refund.root_id is not null and disputed.root_id is null
                )
            )
        )
    );
