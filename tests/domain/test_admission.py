from camserver.domain.admission import AdmissionPolicy


def test_the_modal_budget_is_what_the_reserves_leave() -> None:
    assert AdmissionPolicy().modal_budget() == 35
    assert AdmissionPolicy(max_ui_users=0).modal_budget() == 45
    assert AdmissionPolicy(sub_stream_cost=2).modal_budget() == 25


def test_reserves_larger_than_the_machine_leave_nothing() -> None:
    assert AdmissionPolicy(total_stream_units=3).modal_budget() == 0
