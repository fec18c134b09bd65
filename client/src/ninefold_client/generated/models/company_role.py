from typing import Literal

CompanyRole = Literal["operator"]

COMPANY_ROLE_VALUES: set[CompanyRole] = {
    "operator",
}


def check_company_role(value: str) -> CompanyRole:
    if value in COMPANY_ROLE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {COMPANY_ROLE_VALUES!r}")
